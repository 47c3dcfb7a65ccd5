"""What is tampered with is found: `python3 -m unittest bench/no_gpu_programs/test_agree.py`."""

import copy
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from no_gpu_programs import agree  # noqa: E402

#: two launches: pointers at 0 and 8 (addresses differ from side to side), a number at 16
OWN = """launch add 4,1,1 256,1,1 0 000000001a000000100000001e000000e8030000 0:4096:0,8:4096:16
launch add 8,1,1 256,1,1 64 000000001a000000100000001e000000d0070000 0:4096:0,8:4096:16
"""
DEVICE = OWN.replace("1a000000", "0d7f0000").replace("1e000000", "0e7f0000")
TRACE = {
    "without_gpu": {"exact_until": None},
    "launches": [{
        "kernel": "add", "grid": [4, 1, 1], "block": [256, 1, 1], "dynamic_smem": 0, "launches": 1, "in_graphs": 0,
        "given": {
            "launch": 1, "parameters": "000000001a000000100000001e000000e8030000",
            "pointers": [{"at": 0, "size": 4096, "offset": 0}, {"at": 8, "size": 4096, "offset": 16}],
        },
    }],
}
SEEN = {
    "launches": [{
        "kernel": "add", "grid": [4, 1, 1], "block": [256, 1, 1], "dynamic_smem": 0, "launches": 1, "in_graphs": 0,
        "stayed": {"parameters": "................................e8030000"},
    }],
}


class Agree(unittest.TestCase):
    def compared(self, own, device, last=None):
        return agree.compared(agree.lines(own), agree.lines(device), last)

    def test_addresses_alone_may_differ(self):
        found = self.compared(OWN, DEVICE)
        self.assertTrue(found["all alike"])
        self.assertEqual((found["launches"], found["alike"]), (2, 2))

    def test_what_is_tampered_with_is_found(self):
        for old, new, what in [
            ("add 8,", "add 9,", "grid"),
            ("add 8,1,1 256", "add 8,1,1 128", "block"),
            (" 64 ", " 32 ", "smem"),
            ("add 8", "sub 8", "kernel"),
            ("launch add 8", "graph add 8", "kind"),
            ("d0070000", "d0070001", "parameters: byte 19"),
            ("d0070000 ", "d007 ", "parameters: 20 bytes, on the device 18"),
            ("d0070000 0:4096:0", "d0070000 0:8192:0", "allocation of the pointer at 0"),
            ("d0070000 0:4096:0,8:4096:16", "d0070000 0:4096:0,8:4096:0", "allocation of the pointer at 8"),
            ("d0070000 0:4096:0,8:4096:16", "d0070000 0:4096:0", "pointers"),
        ]:
            tampered = DEVICE.replace(old, new)
            self.assertNotEqual(tampered, DEVICE)
            found = self.compared(OWN, tampered)
            self.assertFalse(found["all alike"], what)
            self.assertEqual(found["alike"], 1)
            self.assertIn(f"launch 2: add: {what}", found["different"][0])

    def test_one_launch_more_or_less_is_found(self):
        first = DEVICE.splitlines()[0] + "\n"
        for device in (first, DEVICE + first):
            self.assertFalse(self.compared(OWN, device)["all alike"])

    def test_what_is_not_exact_is_left_out(self):
        found = self.compared(OWN, DEVICE.replace("add 8,", "add 9,"), last=1)
        self.assertTrue(found["all alike"])
        self.assertEqual(found["launches"], 1)

    def test_behind_a_graph_nobody_counts(self):
        graph = OWN.replace("launch add 4", "graph add 4")
        self.assertEqual(self.compared(graph, graph, last=2)["launches"], 0)
        self.assertEqual(self.compared(graph, graph)["launches"], 2)

    def test_the_trace_is_held_against_the_device(self):
        device = agree.lines(DEVICE)
        self.assertEqual(agree.given(TRACE, device), {"first launches": 1, "different": []})
        for key, value in [("size", 8), ("offset", 4)]:
            wrong = copy.deepcopy(TRACE)
            wrong["launches"][0]["given"]["pointers"][1][key] = value
            self.assertEqual(len(agree.given(wrong, device)["different"]), 1)
        wrong = copy.deepcopy(TRACE)
        wrong["launches"][0]["given"]["parameters"] = "000000001a000000100000001e000000e9030000"
        self.assertEqual(len(agree.given(wrong, device)["different"]), 1)

    def test_constants_of_the_device_s_trace(self):
        self.assertEqual(agree.traces(TRACE, SEEN)["other constants"], [])
        self.assertEqual(agree.traces(TRACE, SEEN)["counts alike"], 1)
        other = copy.deepcopy(SEEN)
        other["launches"][0]["stayed"]["parameters"] = "................................e9030000"
        self.assertEqual(agree.traces(TRACE, other)["other constants"], ["add"])


if __name__ == "__main__":
    unittest.main()
