"""Builds the website: `python bootstrap.py site [FOLDER]`. Pages are staged as Markdown, Sphinx does the rest, and
`lab.py` adds the lab, in which the lessons open in the browser.

The staged folder looks like the repository, so links between README.md and docs/ hold as they are. Lessons run once,
solved; `lesson_pages.py` takes from such a run only what given cells put out. Runs are kept until something changes.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import re
import shutil
import sys
import tempfile
import tomllib
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import api_pages
import game
import lesson_pages
import nbformat
from lab import DISTRIBUTION_POINT, LabError, build_lab
from nbformat import NotebookNode
from sphinx.cmd.build import build_main
from widget_files import write_widgets

from autograder.files import write_file
from autograder.lessons.audit.kernel_run import failures, run_in_kernel
from autograder.lessons.audit.passed_gates import PassedGates, fingerprint_of
from autograder.lessons.audit.variants import solved_release
from autograder.lessons.builder.assignments import parted
from autograder.lessons.builder.lesson_files import files_beside, lesson_texts
from autograder.lessons.builder.notebook import assemble
from autograder.lessons.builder.text import read_lesson
from autograder.lessons.commands.audit import PASSED
from autograder.lessons.commands.demos import gallery
from autograder.lessons.garbage_collection import collect_seldom
from autograder.lessons.release import release_notebook

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
COURSE = ROOT / "course"
KERNELS = 2  # at a time
COPIED = ("*.md", "LICENSE", "course/paths.toml", "docs/*.md", "docs/decisions/*.md", "course/pictures/*.png")
MADE_BY_SPHINX = ".buildinfo"
GAME = "<!-- the game -->"
ADDRESS = "<!-- address -->"
FIRST_PICTURE = "<!-- the first picture of the gallery -->"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python bootstrap.py site", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / ".build" / "site", help="where the site goes")
    parser.add_argument(
        "--pyodide",
        type=Path,
        metavar="FOLDER_OR_ARCHIVE",
        help=f"a Pyodide to become a part of the site, so that pages ask no other host; otherwise {DISTRIBUTION_POINT}",
    )
    parser.add_argument("--address", default="", help="where the site will be, for its picture in other people's posts")
    parser.add_argument("--runs", type=Path, default=ROOT / ".build" / "site-runs", help="where runs are kept")
    arguments = parser.parse_args()
    collect_seldom()
    if (
        arguments.folder.exists()
        and any(arguments.folder.iterdir())
        and not (arguments.folder / MADE_BY_SPHINX).exists()
    ):
        parser.error(
            f"{arguments.folder} holds something else than a site, which would be deleted. Name another folder."
        )
    with tempfile.TemporaryDirectory(prefix="site-") as name:
        staged = Path(name)
        recorded = stage(staged / "pages", arguments.runs, arguments.address)
        write_widgets(staged / "widgets")
        shutil.rmtree(arguments.folder, ignore_errors=True)
        options = ["-b", "html", "-W", "--keep-going", "-q", "-c", str(HERE), "-d", str(staged / "doctrees")]
        static = f"html_static_path={HERE / 'static'},{staged / 'widgets'},{staged / 'stills'}"
        status = build_main([*options, "-D", static, str(staged / "pages"), str(arguments.folder)])
    keep_images_apart(arguments.folder)
    try:
        build_lab(arguments.folder / "lab", arguments.pyodide, recorded)
    except LabError as error:
        print(error, file=sys.stderr)
        return 1
    size = sum(file.stat().st_size for file in arguments.folder.rglob("*") if file.is_file())
    print(f"{arguments.folder / 'index.html'}: {size / 1e6:.0f} MB. Open it, or serve the folder: the lab needs that.")
    return status


def stage(folder: Path, runs: Path, address: str) -> dict[str, str]:
    """Write everything that Sphinx reads into a folder. Returns what the cells of each lesson put out, for the lab."""
    for file in (file for pattern in COPIED for file in ROOT.glob(pattern)):
        target = folder / file.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)
    runs.mkdir(parents=True, exist_ok=True)
    texts = lesson_texts(COURSE)
    (folder / "lessons").mkdir(parents=True)
    for text in texts:
        read_lesson(text)  # here, so that no process forked below has to; each page needs the lessons before its own
    # Processes, not threads: in Python 3.11, threads that parse at the same time can raise SystemError.
    with ProcessPoolExecutor(KERNELS) as processes:
        pages = processes.map(partial(lesson_page, runs=runs), texts)
        shown = processes.submit(gallery_run, runs)
        recorded = {}
        for text, (page, outputs) in zip(texts, pages, strict=True):
            (folder / "lessons" / f"{text.stem}.md").write_text(page, encoding="utf-8")
            recorded[text.stem] = outputs
    demos = shown.result()
    (folder / "demos").mkdir()
    for name, page in lesson_pages.demo_pages(demos, lessons_with_demos(texts)).items():
        (folder / f"{name}.md").write_text(page, encoding="utf-8")
    stills = folder.with_name("stills")
    stills.mkdir()
    for name, picture in lesson_pages.stills(demos).items():
        (stills / f"{name}.svg").write_text(picture, encoding="utf-8")
    front = (HERE / "index.md.in").read_text(encoding="utf-8")
    made = {FIRST_PICTURE: lesson_pages.first_picture(demos), GAME: lesson_pages.raw(game.place())}
    for place, content in {**made, ADDRESS: f"{address.rstrip('/')}/" if address else ""}.items():
        front = front.replace(place, content)
    (folder / "index.md").write_text(front, encoding="utf-8")
    for name, page in api_pages.pages():
        (folder / "api").mkdir(exist_ok=True)
        (folder / "api" / f"{name}.md").write_text(page, encoding="utf-8")
    return recorded


def keep_images_apart(site: Path) -> None:
    """Make the images inside of pages files of their own, which a browser loads as they come into sight."""
    images = site / "_images"
    images.mkdir(exist_ok=True)
    for page in site.rglob("*.html"):

        def apart(image: re.Match[str], up: str = "../" * (len(page.relative_to(site).parts) - 1)) -> str:
            content = base64.b64decode(image[2])
            file = images / f"{hashlib.sha256(content).hexdigest()[:16]}.{image[1]}"
            file.write_bytes(content)
            return f'src="{up}_images/{file.name}"'

        text = page.read_text(encoding="utf-8")
        page.write_text(re.sub(r'src="data:image/(png|svg)(?:\+xml)?;base64,([^"]+)"', apart, text), encoding="utf-8")


def lesson_page(text: Path, runs: Path) -> tuple[str, str]:
    """The page of a lesson: what students are given, and what its given cells put out when all is solved. The second
    text has these outputs alone.
    """
    source = assemble(text)
    beside = files_beside(text, COURSE)
    name = f"{text.stem}-{fingerprint_of(text, COURSE, source)}"
    ran = kept_run(solved_release(source), name, beside, runs)
    helpers = {name: content.decode() for name, content in beside.items() if name.endswith(".py")}
    further = "".join(name for name in parted(source, text) if name != text.stem)
    page = lesson_pages.lesson(text.stem, release_notebook(source), ran, helpers, further)
    return page, lesson_pages.recorded(ran)


def lessons_with_demos(texts: list[Path]) -> dict[str, list[str]]:
    """Which lessons show a demo of the gallery, by its title."""
    found: dict[str, list[str]] = {}
    for text in texts:
        notes = tomllib.loads(text.with_name("teaching.toml").read_text(encoding="utf-8"))
        for title in notes["demos"]:
            found.setdefault(title, []).append(text.stem)
    return found


def gallery_run(runs: Path) -> NotebookNode:
    """The gallery with its outputs."""
    text = COURSE / "gallery.py"
    notebook = nbformat.from_dict(gallery(COURSE))
    return kept_run(notebook, f"gallery-{fingerprint_of(text, COURSE, notebook)}", {}, runs)


def kept_run(notebook: NotebookNode, name: str, beside: dict[str, bytes], runs: Path) -> NotebookNode:
    """The notebook with the outputs of a run: kept here, kept by `autograder audit`, or new. Raises RuntimeError if a
    cell fails."""
    kept, (lesson, _, fingerprint) = runs / f"{name}.ipynb", name.rpartition("-")
    if not kept.exists():
        ran = PassedGates(PASSED).kept_run(lesson, fingerprint) or new_run(notebook, name, beside)
        lesson_pages.answer_buttons(ran)
        for old in runs.glob(f"{lesson}-*"):
            old.unlink()
        nbformat.write(ran, kept)
    return nbformat.read(kept, as_version=4)


def new_run(notebook: NotebookNode, name: str, beside: dict[str, bytes]) -> NotebookNode:
    """The notebook with the outputs of a kernel. Raises RuntimeError if a cell fails."""
    with tempfile.TemporaryDirectory() as workspace:
        folder = Path(workspace) / name  # lessons look into the folder above
        folder.mkdir()
        for target, content in beside.items():
            write_file(folder / target, content)
        ran = run_in_kernel(notebook, folder)
    if failed := failures(ran):
        raise RuntimeError(f"{name}: {failed}")
    return ran


if __name__ == "__main__":
    raise SystemExit(main())
