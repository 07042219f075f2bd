"""A test that hands a student's SQL to SQLite, in a course with a database, leaves everybody else's marks alone."""

from __future__ import annotations

import sqlite3
from contextlib import closing, nullcontext
from pathlib import Path
from unittest import mock

import nbformat
import pytest
from nbformat.v4 import new_notebook

from autograder.grading.course import generate_assignment, open_course
from autograder.grading.submission.grader import Grader
from tests.autograder.conftest import ASSIGNMENT, NOTEBOOK, SmallCourse, nbgrader_cell
from tests.autograder.grading.here import grade_all

pytestmark = pytest.mark.sandbox

GIVEN = "import sqlite3\nimport pandas as pd\nconn = sqlite3.connect('shop.db')"
RIGHT = 'query = "SELECT name FROM goods WHERE price > 2"\nchange = "UPDATE goods SET price = 9"'
ANSWER = f"### BEGIN SOLUTION\n{RIGHT}\n### END SOLUTION"
ASKS = 'assert list(pd.read_sql_query(query, conn)["name"]) == ["pear"]'
CHANGES = """conn.execute(change)
conn.commit()
assert conn.execute("SELECT price FROM goods").fetchall() == [(9,), (9,)]"""
HOSTILE = """query = "ATTACH 'GRADEBOOK' AS other"
change = "UPDATE other.grade SET manual_score = 13" """


@pytest.fixture
def shop(tmp_path: Path) -> SmallCourse:
    """A course with a database, whose tests run what students wrote in SQL."""
    course = SmallCourse(tmp_path / "course")
    source = course.root / "source" / ASSIGNMENT
    source.mkdir(parents=True)
    (course.root / "nbgrader_config.py").write_text("c = get_config()\nc.CourseDirectory.course_id = 'shop'\n")
    with closing(sqlite3.connect(source / "shop.db")) as goods, goods:
        goods.execute("CREATE TABLE goods (name, price)")
        goods.executemany("INSERT INTO goods VALUES (?, ?)", [("apple", 1), ("pear", 3)])
    cells = [nbgrader_cell("given", GIVEN), nbgrader_cell("answer", ANSWER)]
    cells[0].metadata.nbgrader.update(solution=False, locked=True)
    cells += [nbgrader_cell("test_query", ASKS, points=2), nbgrader_cell("test_change", CHANGES, points=3)]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": kernel}), source / f"{NOTEBOOK}.ipynb")
    with open_course(course.root) as opened:
        generate_assignment(opened, ASSIGNMENT)
    return course


def submit(course: SmallCourse, student: str, answer: str) -> None:
    notebook = course.released()
    next(cell for cell in notebook.cells if cell.metadata.nbgrader.grade_id == "answer").source = answer
    course.submit(student, notebook)


@pytest.mark.parametrize("own_steps", [False, True])
def test_sql_of_a_student_s_reaches_no_gradebook_and_no_later_submission(shop: SmallCourse, own_steps: bool) -> None:
    gradebook = shop.root / "gradebook.db"
    submit(shop, "ann", RIGHT)
    submit(shop, "eve", HOSTILE.replace("GRADEBOOK", str(gradebook)))
    submit(shop, "zoe", RIGHT)

    def graded(student: str = "*") -> dict[str, float | None]:
        return {name: record.points for name, record in grade_all(shop, student, force=True).items()}

    with mock.patch.object(Grader, "_needs_own_steps", return_value=True) if own_steps else nullcontext():
        assert graded() == {"ann": 5, "eve": 0, "zoe": 5}
    with closing(sqlite3.connect(gradebook)) as marks:
        assert marks.execute("SELECT DISTINCT manual_score FROM grade").fetchall() == [(None,)]
    with closing(sqlite3.connect(shop.root / "source" / ASSIGNMENT / "shop.db")) as goods:
        assert goods.execute("SELECT price FROM goods").fetchall() == [(1,), (3,)]
