"""An nbgrader course directory, opened as nbgrader itself opens one, with our configuration on top.

nbgrader looks for its configuration and for plugins in the current directory, and its converters change into the
course's root; so opening a course changes this process's working directory for as long as the course is open.
"""

from __future__ import annotations

import contextlib
import fnmatch
import functools
import glob
import logging
import os
import re
import sys
import tempfile
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from nbgrader.api import Base, Gradebook
from nbgrader.apps.baseapp import NbGrader
from nbgrader.coursedir import CourseDirectory
from nbgrader.utils import temp_attrs
from sqlalchemy import Connection, create_engine, inspect, select

from autograder.files import is_litter
from autograder.grading.converting import converted
from autograder.grading.errors import CourseError as CourseError
from autograder.nbgrader_plugins import configure
from autograder.nbgrader_plugins.course_secret import gradebook_file, secret_path

TABLES = Base.metadata.tables
WAIT_FOR_LOCK = 60  # seconds that a worker waits while another one writes to an SQLite gradebook
STEPS = ("source", "release", "submitted", "autograded", "feedback")  # each has a folder
HERE = "\0"  # in a path: the place of a name; no name has this character
UNUSABLE_NAMES = (
    # (a pattern that finds what is wrong with the name of an assignment, what nbgrader does with that)
    (r"[*?[]", "reads {} in the name of an assignment as a pattern"),
    (r"\+", "takes no {} in the name of an assignment"),
    (r"^\s|\s$", "drops spaces around the name of an assignment"),
    (r"\n", "reads only one line of the name of an assignment"),
)


@dataclass(frozen=True)
class Course:
    """An open course: nbgrader's application object, which carries the configuration, and its course directory."""

    app: NbGrader

    @property
    def coursedir(self) -> CourseDirectory:
        return self.app.coursedir

    @property
    def root(self) -> Path:
        return Path(self.coursedir.root)

    def gradebook(self) -> Gradebook:
        return Gradebook(self.coursedir.db_url, self.coursedir.course_id)

    @contextlib.contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection to the gradebook's database, which has to exist. `gradebook` takes longer."""
        engine = create_engine(self.coursedir.db_url)
        try:
            with engine.connect() as connection:
                yield connection
        finally:
            engine.dispose()

    def folder(self, step: str, student: str, assignment: str) -> Path:
        """The folder of one assignment in one of nbgrader's steps, such as `submitted` or `feedback`."""
        return Path(self.coursedir.format_path(getattr(self.coursedir, f"{step}_directory"), student, assignment))


@contextlib.contextmanager
def open_course(directory: Path, *, unsafe: bool = False) -> Iterator[Course]:
    """Open an nbgrader course directory. Raises `CourseError` if there is none."""
    root = directory.resolve()
    if not root.is_dir():
        raise CourseError(f"There is no course directory {directory}.")
    put_environment_on_path()
    with contextlib.chdir(root):
        app = quieted(NbGrader())
        app.load_cwd_config = False
        _initialize(app, root)
        quieted(app)
        configure(app.config)
        if unsafe:
            app.config.JudgeNotebook.unsafe = True
        _refuse_pattern(app.coursedir.root)
        _refuse_empty(app.coursedir)
        app.coursedir.db_url = _patient(app.coursedir.db_url)
        course, source = Course(app), Path(app.coursedir.root, app.coursedir.source_directory)
        if not ((root / "nbgrader_config.py").exists() or source.is_dir() or assignments_of(course)):
            raise CourseError(f"{directory} is not an nbgrader course: no nbgrader_config.py and no source folder.")
        yield course


def _refuse_pattern(root: str) -> None:
    """Refuse a path below which nbgrader would find no submissions: it looks for them with `glob`."""
    if found := re.search(r"[*?[]", root):
        reason = f"nbgrader reads {found[0]} in the path of a course as a pattern"
        raise CourseError(f"{reason}, and so finds no submissions in {root}: rename the folder.")


def _refuse_empty(coursedir: CourseDirectory) -> None:
    """Refuse an empty gradebook: SQLite takes it for a new one, so it would go unnoticed that the old one is lost."""
    path = gradebook_file(coursedir)
    if path is not None and path.is_file() and path.stat().st_size == 0:
        raise CourseError(f"The gradebook {path.name} is empty. Restore it from a copy, or delete it to start over.")


def _initialize(app: NbGrader, root: Path) -> None:
    """Read the course's configuration. nbgrader would ignore a configuration with a mistake in it, and so grade by
    other rules; here it is a `CourseError`.
    """
    app.raise_config_file_errors = True
    try:
        app.initialize([], root=str(root))
    except (Exception, SystemExit) as error:  # SystemExit: nbgrader's answer to a setting of a wrong type
        cause = error.__context__ if isinstance(error, SystemExit) and error.__context__ else error
        frames = [frame for frame in traceback.extract_tb(cause.__traceback__) if frame.filename.endswith("_config.py")]
        line = cause.lineno if isinstance(cause, SyntaxError) else frames[-1].lineno if frames else None
        where = f", line {line}," if line else ""
        raise CourseError(f"nbgrader_config.py{where} cannot be used: {type(cause).__name__}: {cause}.") from error


def quieted(app: NbGrader) -> NbGrader:
    """Keep the log of nbgrader's application object off the terminal: each converter's log is captured instead."""
    app.log.propagate = False
    for handler in list(app.log.handlers):
        app.log.removeHandler(handler)
    app.log.addHandler(logging.NullHandler())
    return app


def put_environment_on_path() -> None:
    """Put the environment's programs on PATH, because nbgrader starts `alembic` by its bare name."""
    programs = str(Path(sys.executable).parent)
    paths = os.environ.get("PATH", "").split(os.pathsep)
    if programs not in paths:
        os.environ["PATH"] = os.pathsep.join([programs, *paths])


def require_source(course: Course, assignment: str) -> None:
    """Raise `CourseError` if the course has no such assignment, or one that nbgrader cannot grade."""
    if assignment not in assignments_of(course, glob.escape(assignment)):
        raise CourseError(f"The course has no assignment {assignment!r}. {what_there_is(course)}")
    require_usable_name(assignment)


def require_usable_name(assignment: str) -> None:
    """Raise `CourseError` for an assignment that nbgrader cannot grade because of its name."""
    for pattern, why in UNUSABLE_NAMES:
        if found := re.search(pattern, assignment):
            raise CourseError(f"nbgrader {why.format(found[0])}, so it cannot grade {assignment!r}: rename its folder.")


def has_gradebook(course: Course) -> bool:
    """Whether the course has a gradebook yet: opening one that is not there would make it."""
    file = gradebook_file(course.coursedir)
    return file is None or file.exists()


def is_in_gradebook(course: Course, assignment: str) -> bool:
    """Whether the gradebook says that the assignment has been released. Makes no gradebook if there is none."""
    if not has_gradebook(course):
        return False
    with course.connection() as connection:
        if TABLES.keys() - set(inspect(connection).get_table_names()):
            course.gradebook().close()  # this makes tables that are missing
        assignments, notebooks = TABLES["assignment"], TABLES["notebook"]
        own = select(notebooks.c.id).join(assignments).where(assignments.c.name == assignment)
        return connection.execute(own).first() is not None


@contextlib.contextmanager
def released_for_now(course: Course, assignment: str) -> Iterator[None]:
    """Make sure that the assignment is in the gradebook within the context. If it has not been released, this releases
    it apart: an instructor releases when it is time, with the settings of that day.
    """
    if is_in_gradebook(course, assignment):
        yield
        return
    with released_apart(course, assignment):
        yield


@contextlib.contextmanager
def released_apart(course: Course, assignment: str) -> Iterator[Path]:
    """Within the context, the course has folders and a gradebook of its own, with a fresh release of the assignment and
    nothing else. They are in the folder that is yielded. The root stays: the configuration names files by their paths.
    """
    require_source(course, assignment)
    source, secret = course.folder("source", ".", assignment), secret_path(course.coursedir)
    with tempfile.TemporaryDirectory(prefix="autograder-") as folder:
        steps = {f"{step}_directory": f"{folder}/{step}" for step in STEPS}
        Path(steps["source_directory"]).mkdir()
        Path(steps["source_directory"], assignment).symlink_to(source)
        if secret.is_file():
            Path(folder, secret.name).symlink_to(secret)
        usual = CourseDirectory.directory_structure.default_value
        with temp_attrs(
            course.coursedir, directory_structure=usual, db_url=f"sqlite:///{folder}/gradebook.db", **steps
        ):
            generate_assignment(course, assignment)
            yield Path(folder)


def generate_assignment(course: Course, assignment: str) -> None:
    """Run nbgrader's generate_assignment. Raises `CourseError` with nbgrader's reason."""
    from nbgrader.converters import GenerateAssignment  # and nbconvert, which most commands do without

    with temp_attrs(course.coursedir, assignment_id=assignment):
        converter = GenerateAssignment(coursedir=course.coursedir, parent=course.app)
        converter.force = True
        converter.create_assignment = True
        reason = converted(converter)
    if reason:
        raise CourseError(f"nbgrader cannot release {assignment!r}. {reason}")


def exactly(student: str) -> str:
    """The pattern that makes nbgrader take this student's folder: it would strip spaces around a name."""
    return re.sub(r"^\s|\s$", r"[\g<0>]", student)


def _names_at(path: str, pattern: str = "*") -> list[str]:
    """The names that stand in a path in place of HERE and fit a pattern, without litter. Everything else in the path
    means itself.
    """
    fits = re.compile("([^/]+)".join(map(re.escape, path.split(HERE))))
    found = map(fits.fullmatch, glob.glob(glob.escape(path).replace(HERE, pattern)))
    return sorted({match[1] for match in found if match and not is_litter(match[1])} - {".", ".."})


def submitted_students(course: Course, assignment: str, pattern: str = "*") -> list[str]:
    """The students who have a submission of the assignment in the course directory, sorted."""
    coursedir = course.coursedir
    found = _names_at(coursedir.format_path(coursedir.submitted_directory, HERE, assignment), pattern)
    return [student for student in found if student not in coursedir.student_id_exclude.split(",")]


def absent_students(course: Course, assignment: str, pattern: str = "*") -> list[str]:
    """The students in the gradebook who have no submission of the assignment in the course directory, sorted."""
    with course.connection() as connection:
        known = set(connection.execute(select(TABLES["student"].c.id)).scalars())
    excluded = course.coursedir.student_id_exclude.split(",")
    gone = known - set(submitted_students(course, assignment)) - set(excluded)
    return sorted(student for student in gone if fnmatch.fnmatchcase(student, pattern))


def deadlines(course: Course, assignment: str) -> tuple[datetime | None, dict[str, timedelta]]:
    """The due date of an assignment that is in the gradebook, in UTC, and the students' extensions, as nbgrader keeps
    them.
    """
    assignments, submitted = TABLES["assignment"], TABLES["submitted_assignment"]
    with course.connection() as connection:
        row = connection.execute(select(assignments).where(assignments.c.name == assignment)).one()
        given = submitted.c.assignment_id == row.id, submitted.c.extension.is_not(None)
        extended = connection.execute(select(submitted).where(*given))
        return row.duedate, {it.student_id: it.extension for it in extended if it.extension}


def hidden_submissions(course: Course, assignment: str) -> list[str]:
    """The folders of submissions whose names begin with a dot, which are left out here as in nbgrader."""
    there = set(submitted_students(course, assignment, ".*")) - set(submitted_students(course, assignment))
    return sorted(there - set(course.coursedir.ignore))


def notebooks_of(course: Course, assignment: str) -> list[str]:
    """The names of an assignment's notebooks in `source/` and `release/`, without the extension."""
    folders = (course.folder(step, ".", assignment) for step in ("source", "release"))
    return sorted({path.stem for folder in folders for path in folder.glob("[!.]*.ipynb")})


def misplaced_notebooks(course: Course, assignment: str, pattern: str = "*") -> list[tuple[str, str, bool]]:
    """Notebooks of the assignment in places where they are not graded, each with the folder where it belongs, and
    whether a notebook of that name is already there. They lie directly in a student's folder, in a folder there that
    belongs to no assignment, or among the students' folders.
    """
    coursedir, names = course.coursedir, [f"{name}.ipynb" for name in notebooks_of(course, assignment)]
    place = Path(coursedir.format_path(coursedir.submitted_directory, HERE, assignment))
    if place.name != assignment:
        return []  # this course does not keep the assignments of a student in one folder
    students, known, found = str(place.parent), {assignment, *assignments_of(course)}, []
    for name in _names_at(students, pattern):
        if name in coursedir.student_id_exclude.split(","):
            continue
        student = Path(students.replace(HERE, name))
        folders = [student, *(folder for folder in sorted(student.glob("*/")) if not folder.name.startswith("."))]
        lie = [folder / name for folder in folders if folder.name not in known for name in names]
        found += [(path, student / assignment) for path in lie if path.is_file()]
    if not pattern.strip("*"):
        among = Path(students).parent
        loose = sorted(path for path in among.glob("[!.]*.ipynb") if path.is_file())
        found += [(path, among / "STUDENT" / assignment) for path in loose]
    short = functools.partial(os.path.relpath, start=course.root)
    return [(short(path), short(target), (target / path.name).exists()) for path, target in found]


def _patient(db_url: str) -> str:
    """The URL of the same gradebook, but with a timeout, so that a writer waits for its turn."""
    if db_url.startswith("sqlite:///") and "?" not in db_url:
        return f"{db_url}?timeout={WAIT_FOR_LOCK}"
    return db_url


def assignments_of(course: Course, pattern: str = "*") -> list[str]:
    """The assignments that have a source folder and fit a pattern."""
    found = _names_at(course.coursedir.format_path(course.coursedir.source_directory, ".", HERE), pattern)
    return [name for name in found if course.folder("source", ".", name).is_dir()]


def what_there_is(course: Course) -> str:
    """The assignments of the course, in a sentence; if it has none, what to do."""
    if names := assignments_of(course):
        return f"It has: {', '.join(names)}."
    return (
        f"There are no assignments in {course.folder('source', '.', 'x').parent}: run `autograder build` in "
        f"{course.root} if that is your course, or name your course with --course."
    )
