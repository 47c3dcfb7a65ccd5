#!/usr/bin/env python3
"""The sources of the programs in one archive, for a machine that has no network.

    bench/no_gpu_programs/stage.py OUT.tar.xz NAME=GITDIR…      (names as in `programs.py`: gpu-rodinia=…/gpu-rodinia.git)
"""

import io
import subprocess
import sys
import tarfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from no_gpu_programs.programs import PROGRAMS  # noqa: E402

#: what programs of a suite share
SHARED = {
    "polybenchGpu": ["common"], "gpu-rodinia": [], "cuda-samples": ["Common"], "Parboil": ["common"],
    "altis": ["config", "src/common", "src/cuda/common"], "shoc": ["config", "src/common", "src/cuda/common", "src/cuda/include"],
}
#: no program reads these
LEFT_OUT = (".pdf", ".doc", ".md", ".png", ".zip", ".flo", ".lib", ".dll", ".a", ".so", ".vcxproj", ".sln", "/freeimage/", "/gl/", "/data/rhd", ".docx", ".jpg")
MOST = 4_000_000


def files(suite, git):
    wanted = SHARED[suite] + [program.folder.split("/", 1)[1] for program in PROGRAMS if program.folder.startswith(f"{suite}/")]
    listing = subprocess.run(["git", "--git-dir", git, "ls-tree", "-r", "-l", "HEAD"], capture_output=True, text=True, check=True).stdout
    for line in listing.splitlines():
        meta, path = line.split("\t", 1)
        _, kind, digest, size = meta.split()
        is_wanted = kind == "blob" and any(path.startswith(f"{folder}/") for folder in wanted)
        if is_wanted and size.isdigit() and int(size) <= MOST and not any(word in path.lower() for word in LEFT_OUT):
            yield path, digest


def main():
    out, *suites = sys.argv[1:]
    with tarfile.open(out, "w:xz") as archive:
        for word in suites:
            suite, git = word.split("=", 1)
            for path, digest in files(suite, git):
                found = subprocess.run(["git", "--git-dir", git, "cat-file", "blob", digest], capture_output=True)
                if found.returncode == 0:
                    entry = tarfile.TarInfo(f"{suite}/{path}")
                    entry.size, entry.mode = len(found.stdout), 0o644
                    archive.addfile(entry, io.BytesIO(found.stdout))
    print(f"{Path(out).stat().st_size} bytes")


if __name__ == "__main__":
    main()
