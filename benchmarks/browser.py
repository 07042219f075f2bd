"""What a first check costs in a browser tab: megabytes and seconds, and each check beside Linux.

`python -m benchmarks.browser` builds the lab of the website with a Pyodide of its own, serves it to this machine, and
opens lesson 02 in Chromium: once in a browser that has never been there, then once more. Both times the cells before
the first exercise run, then the solved exercise and its check. Megabytes are those of the answers up to that check, as
they are and as a web host would compress them. Then solved lessons (those named, else 02, 04 and 09) run in the same
Pyodide under node and in this Python, both without PyTorch, and their checks are timed.
"""

from __future__ import annotations

import argparse
import gzip
import re
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

from autograder.lessons.audit.variants import solved_release
from autograder.lessons.builder.lesson_files import lesson_texts
from autograder.lessons.builder.notebook import assemble
from autograder.notebooks.cells import grade_id
from docs.site.lab import PYODIDE, build_lab
from tests.browser.conftest import Lab, browser
from tests.browser.test_site import LESSON, RUN, Quiet
from tests.tab.assemble import assembled
from tests.tab.lessons import COURSE, compared, deliver

MEGABYTE = 1e6
GIVEN = re.compile(r"# Run this cell: it imports what the lesson needs\.|class|def")
TARGETS = "targets: 12 s and 25 MB compressed cold, 4 s warm; a check at most 3 times as long as on Linux"


class Counted(Quiet):
    """Remembers which files it has sent."""

    sent: list[Path]

    def send_head(self) -> Any:
        self.sent.append(Path(self.translate_path(self.path)))
        return super().send_head()


@contextmanager
def served(site: Path, sent: list[Path]) -> Iterator[str]:
    """The address of a server of this folder, which adds to `sent` what it is asked for."""
    handler = partial(type("Here", (Counted,), {"sent": sent}), directory=str(site))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def megabytes(files: list[Path]) -> tuple[float, float]:
    """The size of files, and of what a web host sends that compresses whatever it makes smaller."""
    contents = [(file / "index.html" if file.is_dir() else file).read_bytes() for file in files if file.exists()]
    compressed = [min(len(gzip.compress(content)), len(content)) for content in contents]
    return sum(map(len, contents)) / MEGABYTE, sum(compressed) / MEGABYTE


def first_check(page: Any, address: str) -> tuple[float, float]:
    """The seconds until the kernel waits, and until the first check has passed, from the moment of the address."""
    cells = solved_release(assemble(LESSON)).cells
    places = {grade_id(cell): index for index, cell in enumerate(cells) if grade_id(cell)}
    exercise, test = places["add_and_multiply"], places["test_add_and_multiply"]
    given = [index for index, cell in enumerate(cells) if index < exercise and GIVEN.match(cell.source)]
    start = time.perf_counter()
    page.goto(address)
    lab = Lab(page, Path(), address, "")
    lab.wait_open()
    waits = time.perf_counter() - start
    for index in (*given, exercise, test):
        shown = page.evaluate(RUN, [index, cells[index].source])
    if not shown or not shown[0].startswith("4 of 4"):
        raise RuntimeError(f"the check did not pass: {shown}")
    return waits, time.perf_counter() - start


def in_chromium(scratch: Path) -> None:
    """Print what the first check costs, cold and warm."""
    build_lab(scratch / "lab", assembled())
    sent: list[Path] = []
    print("| visit | s to the kernel | s to the first check | files | MB | MB compressed |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    with served(scratch, sent) as server, browser(scratch / "profile") as chromium:
        for visit in ("first", "second"):
            sent.clear()
            page = chromium.new_page()
            address = f"{server}/lab/lab/index.html?path={LESSON.stem}/{LESSON.stem}.ipynb"
            waits, checked = first_check(page, address)
            plain, compressed = megabytes(list(dict.fromkeys(sent)))
            print(
                f"| {visit} | {waits:.1f} | {checked:.1f} | {len(sent)} | {plain:.1f} | {compressed:.1f} |", flush=True
            )
            page.close()


def beside_linux(scratch: Path, lessons: list[str]) -> None:
    """Print how long checks take in Pyodide, beside this Python."""
    texts = lesson_texts(COURSE)
    places = scratch / "tab", scratch / "here"
    notebooks = deliver(texts, places)
    print("\n| lesson | checks | median s in the tab | here | median ratio | largest ratio |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for text in lesson_texts(COURSE, lessons):
        tests = compared(text, notebooks[text.stem], scratch / "lab" / PYODIDE, places).of("test")
        tab, here = ([side["seconds"] for side in sides] for sides in list(zip(*tests, strict=True))[1:])
        ratios = [slow / quick for slow, quick in zip(tab, here, strict=True)]
        medians = f"{statistics.median(tab):.2f} | {statistics.median(here):.2f}"
        worst = f"{statistics.median(ratios):.1f} | {max(ratios):.1f}"
        print(f"| {text.stem} | {len(tests)} | {medians} | {worst} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.browser", description=__doc__)
    parser.add_argument("lessons", nargs="*", metavar="LESSON", help="whose checks are timed")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        in_chromium(Path(name))
        beside_linux(Path(name), asked.lessons or ["02", "04", "09"])
    print(f"\n{TARGETS}")


if __name__ == "__main__":
    main()
