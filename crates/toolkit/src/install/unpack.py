"""Unpack wheels: unpack.py DIRECTORY WHEEL... (keeps which files are programs)."""

import os
import sys
import zipfile

for wheel in sys.argv[2:]:
    with zipfile.ZipFile(wheel) as archive:
        for item in archive.infolist():
            path = archive.extract(item, sys.argv[1])
            if not item.is_dir():
                os.chmod(path, 0o755 if item.external_attr >> 16 & 0o100 else 0o644)
