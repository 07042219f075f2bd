"""The files of lessons: their texts, and the data and helper modules that they need beside their notebooks.

Standard library only, so that `autograder lab` need not wait for Jupyter's libraries when nothing has changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from autograder.files import write_file
from autograder.lessons.builder.case_files import cases_file, without_hidden_cases

STYLES = "styles.py"
"""The file of a lesson with other right solutions, as cells with a tag `style:NAME`."""
MISTAKES, SIGNATURES = "mistakes.txt", "signatures_{}.json"
"""What learners get wrong in a lesson, and how its cases know it again."""
OUTCOMES = "outcomes_{}.toml"
"""What answers each prediction that a lesson asks for: question -> expression."""
FURTHER = "_further"
"""The end of the name of an assignment that is the optional part of a lesson."""
LESSON_NAME = re.compile(r"\d\d_[a-z0-9_]+")
DATA_FILE = re.compile(r"""["'](data/[\w.\-]+)["']""")
HELPERS = re.compile(r"helpers_\d\d")
"""The names of modules of helpers."""
IMPORT_OF_HELPERS = re.compile(rf"^\s*(?:from|import) ({HELPERS.pattern})\b", re.MULTILINE)


class LessonTextError(Exception):
    """A lesson cannot be built from its text. The message names the file, the line and the cell."""


def lesson_texts(course_dir: Path, names: Sequence[str] = ()) -> list[Path]:
    """The lesson texts of a course, all or those named (`02`, `02_scalar_engine` or a path). A lesson is a folder, and
    its text has the folder's name. Raises LessonTextError.
    """
    if flat := sorted(path.name for path in (course_dir / "lessons").glob("*.py") if LESSON_NAME.fullmatch(path.stem)):
        stem = flat[0].removesuffix(".py")
        raise LessonTextError(f"a lesson is a folder: move lessons/{flat[0]} to lessons/{stem}/{flat[0]}")
    folders = sorted(path for path in (course_dir / "lessons").glob("*") if LESSON_NAME.fullmatch(path.name))
    texts = [path for folder in folders if (path := folder / f"{folder.name}.py").is_file()]
    if not names:
        return texts
    chosen = []
    for name in names:
        found = [path for path in texts if Path(name).stem in (path.stem, path.stem.partition("_")[0])]
        if not found:
            known = ", ".join(path.stem for path in texts) or "none"
            raise LessonTextError(f"there is no lesson {name!r} in {course_dir / 'lessons'}; the lessons are: {known}")
        chosen += found
    return chosen


def files_beside(path: Path, course_dir: Path) -> dict[str, bytes]:
    """What a lesson needs beside its notebook, by the names of the files there: those of course/data that it names as
    "data/NAME", the modules of helpers that it imports, which lie in its own folder or in that of the lesson with their
    number, what answers its predictions, and its cases, without the hidden ones. Raises LessonTextError for a missing
    file.
    """
    found = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        for name, file in _asked_for(line, path, course_dir):
            if not file.is_file():
                missing = f"the lesson needs {name}, which {file.parent} does not have"
                raise LessonTextError(f"{path.name}:{number}: {missing}")
            found[name] = file.read_bytes()
    cases = cases_file(path)
    if cases.is_file():
        found[cases.name] = without_hidden_cases(cases.read_text(encoding="utf-8")).encode()
    for kind in (SIGNATURES, OUTCOMES):
        file = path.with_name(kind.format(path.stem[:2]))
        found |= {file.name: file.read_bytes()} if file.is_file() else {}
    return dict(sorted(found.items()))


def place_files(path: Path, course_dir: Path, folder: Path) -> None:
    """Copy the files that a lesson needs into the folder of its notebook. Raises LessonTextError for a missing one."""
    for name, content in files_beside(path, course_dir).items():
        write_file(folder / name, content)


def _asked_for(line: str, text: Path, course_dir: Path) -> Iterator[tuple[str, Path]]:
    for name in DATA_FILE.findall(line):
        yield name, course_dir / name
    for module in IMPORT_OF_HELPERS.findall(line):
        owners = (course_dir / "lessons").glob(f"{module[-2:]}_*/{module}.py")
        yield f"{module}.py", next(owners, text.with_name(f"{module}.py"))
