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


#: a pointer and a byte in one structure of 16 bytes, then a number, of which the kernel reads the lower half, then one taken whole
PADDED = """.visible .entry add(
    .param .align 8 .b8 add_param_0[16],
    .param .u64 .ptr .align 1 add_param_1,
    .param .u32 add_param_2,
    .param .align 4 .b8 add_param_3[8]
)
{
    ld.param.u64 %rd1, [add_param_0];
    ld.param.u8 %rs1, [add_param_0+8];
    ld.param.v2.u16 {%rs2, %rs3}, [add_param_1];
    ld.param.v4.u8 {%rs4, %rs5, %rs6, %rs7}, [add_param_1+4];
    mov.b64 %rd2, add_param_3;
    st.global.v4.u16 [%rd1], {%rs1, %rs2, %rs3, %rs5};
    st.global.u64 [%rd1+8], %rd2;
    ret;
}
"""


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

    def test_padding_is_what_no_instruction_reads(self):
        self.assertEqual(agree.read_by_kernels(PADDED), {"add": {*range(9), *range(16, 20), 21, *range(28, 36)}})

    def test_bytes_that_are_read_are_compared_all_the_same(self):
        reads = {"add": set(range(16, 19))}
        own, padded, other = (agree.lines(text) for text in (DEVICE, DEVICE.replace("d0070000", "d0070001"), DEVICE.replace("d0070000", "d0080000")))
        self.assertTrue(agree.compared(own, padded, None, agree.left_out(reads, {}))["all alike"])
        self.assertFalse(agree.compared(own, other, None, agree.left_out(reads, {}))["all alike"])
        self.assertFalse(agree.compared(own, padded, None, agree.left_out({"sub": set()}, {}))["all alike"])

    def test_what_another_run_has_otherwise_is_left_out_at_that_launch_alone(self):
        again = agree.lines(DEVICE.replace("e8030000", "e8040000"))
        changing = agree.unsteady(agree.lines(DEVICE), again)
        self.assertEqual(changing, {0: {17}})
        for old, new, alike in (("e803", "e807", True), ("d007", "d008", False)):
            found = self.compared_but(changing, DEVICE.replace(old, new))
            self.assertEqual(found["all alike"], alike)

    def compared_but(self, changing, device):
        return agree.compared(agree.lines(OWN), agree.lines(device), None, agree.left_out({}, changing))


if __name__ == "__main__":
    unittest.main()
