"""What inplace.py makes of times, and that it takes its runs in turns."""
import os
import sys
import types
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import inplace  # noqa: E402
import own_kernels  # noqa: E402


class Times(unittest.TestCase):
    def test_ratios_are_those_of_pairs(self):
        found = inplace.beside([10, 20, 10], [9, 22, 8])
        self.assertEqual((found['ratio'], found['low'], found['high'], found['rounds']), (0.9, 0.8, 1.1, 3))
        self.assertEqual((found['plain'], found['with']), (10, 9))
        self.assertEqual(inplace.middle([4, 1, 3, 2]), 2.5)

    def test_both_take_turns_and_the_first_is_not_always_first(self):
        order = []
        found = inplace.in_turns(4, lambda: order.append('a') or len(order), lambda: order.append('b') or len(order))
        self.assertEqual(''.join(order), 'abbaabba')
        self.assertEqual(found, [[1, 4, 5, 8], [2, 3, 6, 7]])
        self.assertIsNone(inplace.in_turns(2, lambda: 1, lambda: None))

    def test_rounds_are_added_until_the_median_is_known(self):
        noisy = iter([1.0, 1.3, 0.8] + [1.0] * 40)
        found = inplace.in_turns(3, lambda: 1.0, lambda: next(noisy), 60)
        self.assertEqual(len(found[0]), 9)
        self.assertEqual(inplace.interval([1.0 / b for b in found[1]]), (1.0, 1.0))
        steady = inplace.in_turns(3, lambda: 1.0, lambda: 2.0, 60)
        self.assertEqual(len(steady[0]), 3)
        wild = iter([1.0, 2.0] * 20)
        self.assertEqual(len(inplace.in_turns(3, lambda: 1.0, lambda: next(wild), 60)[0]), 15)

    def test_an_interval_holds_the_median(self):
        self.assertEqual(inplace.interval([5, 1, 3, 2, 4]), (1, 5))
        self.assertEqual(inplace.interval(range(15)), (3, 11))

    def test_who_is_slower_is_listed(self):
        def row(name, ratio):
            return {'program': name, 'gain': 1.0, 'gpu_time': inplace.beside([1.0] * 3, [ratio - 0.02, ratio, ratio + 0.02])}
        summary = inplace.summary([row('a/x', 1.02), row('a/y', 1.005), row('b/z', 0.5), {'program': 'c/none', 'gain': 1.0}])
        self.assertEqual([entry['program'] for entry in summary['slower_than_1%']], ['a/x'])
        self.assertEqual(summary['slower_than_1%'][0]['low'], 1.0)
        self.assertEqual(summary['gpu_time'], {'programs': 3, 'mean': round((1 / 1.02 / 1.005 / 0.5) ** (1 / 3), 4)})
        self.assertEqual(summary['surely_slower_than_1%'], [])
        self.assertEqual(inplace.summary([row('a/x', 1.04)])['surely_slower_than_1%'], ['a/x'])
        self.assertEqual(summary['gpu_time_suites']['b'], {'programs': 1, 'mean': 2.0})
        self.assertIsNone(summary['search'])

    def test_the_share_found_is_of_logarithms(self):
        rows = [{'program': 'a', 'search': [{'share': 0.5, 'search': 0.5 ** 0.5, 'exhaustive': 0.5},
                                            {'share': None, 'search': 1.0, 'exhaustive': 1.0}]},
                {'program': 'b', 'search': [{'share': 1.0, 'search': 0.5, 'exhaustive': 0.5}]}]
        self.assertEqual(inplace.found_share(rows), {'programs': 2, 'kernels': 2, 'share': 0.75, 'by_kernel': 0.75})

    def test_gpu_time_is_that_of_whole_runs(self):
        runs = []
        campaign = types.SimpleNamespace(rounds=2, tool='/tool', settling=0.0)
        campaign.gpu_seconds = lambda words, *_: runs.append(words[0]) or ((3.0, 7) if words[0] == 'p' else (2.0, 7))
        found, launches = inplace.InPlace.measured(campaign, ['p', '1'], 'db', 'place', 'copy', 0)
        self.assertEqual((found['ratio'], launches), (0.6667, 7))
        self.assertEqual(runs, ['p', '/tool/warpwright', '/tool/warpwright', 'p'])

    def test_what_a_run_did_not_come_to_stands_as_it_was(self):
        earlier = [{'program': 'a', 'gain': 1.0}, {'program': 'b', 'gain': 2.0}]
        rows = [{'program': 'a', 'gain': 3.0}, {'program': 'b', 'why': inplace.NO_TIME}, {'program': 'c', 'why': inplace.NO_TIME}]
        self.assertEqual(inplace.joined(rows, earlier), [rows[0], earlier[1], rows[2]])


class OwnKernels(unittest.TestCase):
    def test_a_structure_is_laid_out_as_in_c(self):
        fields = [{'type': 's8', 'value': [1, 2, 3]}, {'type': 'f64', 'value': '1.0 / 4'}, {'type': 'u16', 'value': 'n / 2'}]
        data, align = own_kernels.packed({'fields': fields}, {'n': 9})
        self.assertEqual((data.hex(), align), ('0102030000000000' '000000000000d03f' '0400000000000000', 8))

    def test_the_idle_kernel_keeps_the_parameters(self):
        ptx = '.version 8.0\n.visible .entry f(\n .param .u64 p,\n .param .u32 n\n)\n.maxntid 64\n{\n { st.x; }\n}\n'
        self.assertEqual(own_kernels.idle(ptx, 'f'), ptx[:ptx.index('{')] + '{ ret; }\n')

    def test_all_examples_are_described(self):
        self.assertGreaterEqual(len(own_kernels.names()), 41)
        for name in own_kernels.names():
            with open(f'{own_kernels.EXAMPLES}/{name}/{name}.toml', 'rb') as file:
                description = own_kernels.tomllib.load(file)
            plan = own_kernels.planned(description, 'contents', description['sizes']['full'])
            self.assertTrue(any(arg.get('output') for arg in plan['args']), name)
            self.assertTrue(all(arg['length'] > 0 for arg in plan['args'] if 'name' in arg), name)


if __name__ == '__main__':
    unittest.main()
