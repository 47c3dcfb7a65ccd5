#!/usr/bin/env python3
"""usage: scripts/book.py [FOLDER]

Makes the book of docs/ in FOLDER (default: book) with mdbook. Links out of docs/ lead to copies of the files in it; a
link or anchor that leads nowhere, and any warning of mdbook's, is an error.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
LINK = re.compile(r'href="([^"#]*)(#[^"]*)?"')


def target(path: str, book: Path) -> str | None:
    """Where a link of a page leads: within the book, or to a file of the repository that is copied into it."""
    if not path or ":" in path or (book / path).exists():
        return path
    # The README stands in the book, and names pages from its own folder.
    for folder, name in ((DOCS, path), (ROOT, path)):
        at = Path(os.path.normpath(folder / name))
        page = at.with_suffix(".md")
        if page == DOCS / "SUMMARY.md":
            return "index.html"
        if page.parent == DOCS and page.exists():
            return at.name
        for file in (at, page):
            if file.is_file() and file.is_relative_to(ROOT):
                place = Path("files") / file.relative_to(ROOT)
                (book / place).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, book / place)
                return place.as_posix()
    return None


def main() -> int:
    if sys.argv[1:2] in (["-h"], ["--help"]):
        print(__doc__)
        return 0
    if not shutil.which("mdbook"):
        print("mdbook is not found; mend it with: cargo install mdbook", file=sys.stderr)
        return 3
    book = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "book").resolve()
    made = subprocess.run(
        ["mdbook", "build", "--dest-dir", book, ROOT], capture_output=True, text=True, check=False
    )
    said = made.stdout + made.stderr
    wrong = [line for line in said.splitlines() if "WARN" in line or "ERROR" in line]
    if made.returncode:
        wrong.append(f"mdbook ends with {made.returncode}: {said}")
    pages = [page for page in sorted(book.glob("*.html")) if page.name != "404.html"]
    for page in pages:

        def rewritten(link: re.Match[str]) -> str:
            path, anchor = link[1], link[2] or ""
            found = target(path, book)
            if found is None:
                wrong.append(f"{page.name}: {path} leads nowhere")
            return f'href="{path if found is None else found}{anchor}"'

        page.write_text(LINK.sub(rewritten, page.read_text("utf-8")), "utf-8")
    anchors = {page.name: set(re.findall(r'id="([^"]*)"', page.read_text("utf-8"))) for page in pages}
    for page in pages:
        for path, anchor in LINK.findall(page.read_text("utf-8")):
            known = anchors.get(path or page.name)
            # print.html has all pages in one, with anchors of its own.
            if anchor and known is not None and anchor[1:] not in known and page.name != "print.html":
                wrong.append(f"{page.name}: {path}{anchor} is no place of a page")
    print("\n".join(wrong) or f"{len(pages)} pages in {book}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
