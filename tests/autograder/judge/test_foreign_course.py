"""A course on another subject, written as ordinary nbgrader tests without this project in mind: its honest submissions
get the marks that plain nbgrader gives, cell by cell.

The subject is a small library of books: text, exceptions, files, plots, randomness, and a class hierarchy.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_notebook

from autograder.grading.course import generate_assignment, open_course
from tests.autograder.conftest import nbgrader_cell

pytestmark = pytest.mark.sandbox

IMPORTS = """import csv
import math
import random
import re
from collections import Counter
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
%matplotlib inline"""

# Name of the answer, the instructor's solution, the tests with their points.
EXERCISES: list[tuple[str, str, list[tuple[float, str]]]] = [
    (
        "titles",
        '''def tidy_title(text):
    """The title without surplus spaces, each word capitalized, with the small words small."""
    words = text.split()
    small = {"of", "the", "and", "a"}
    return " ".join(w.lower() if i and w.lower() in small else w.capitalize() for i, w in enumerate(words))

def initials(name):
    return "".join(part[0].upper() + "." for part in re.split(r"[ -]", name) if part)''',
        [
            (
                2,
                'assert tidy_title("  the lord  OF the rings ") == "The Lord of the Rings"\n'
                'assert tidy_title("") == ""',
            ),
            (
                2,
                'assert initials("ursula k. le guin") == "U.K.L.G."\n### BEGIN HIDDEN TESTS\n'
                'assert initials("jean-paul sartre") == "J.P.S."\n### END HIDDEN TESTS',
            ),
            (
                1,
                'result = tidy_title("war and peace")\n'
                'assert result.startswith("War") and result[4:7] == "and", result',
            ),
        ],
    ),
    (
        "errors",
        '''class NotOnShelf(KeyError):
    """A book that is not there."""
    def __init__(self, title):
        super().__init__(title)
        self.title = title

def find(shelf, title):
    if not isinstance(title, str):
        raise TypeError("a title is a text")
    if title not in shelf:
        raise NotOnShelf(title)
    return shelf.index(title)''',
        [
            (1, 'assert find(["a", "b"], "b") == 1'),
            (
                2,
                'try:\n    find(["a"], "z")\nexcept NotOnShelf as error:\n    assert error.title == "z"\n'
                'else:\n    assert False, "no exception"',
            ),
            (
                2,
                'import pytest\nwith pytest.raises(TypeError, match="text"):\n    find([], 3)\n'
                "### BEGIN HIDDEN TESTS\nassert issubclass(NotOnShelf, LookupError)\n### END HIDDEN TESTS",
            ),
        ],
    ),
    (
        "files",
        """def read_prices(path):
    with open(path, newline="") as file:
        return {row["title"]: float(row["price"]) for row in csv.DictReader(file)}

def write_report(path, prices):
    lines = [f"{title}: {price:.2f}" for title, price in sorted(prices.items())]
    Path(path).write_text("\\n".join(lines) + "\\n", encoding="utf-8")
    return len(lines)""",
        [
            (2, 'assert read_prices("prices.csv") == {"Emma": 7.5, "Dune": 9.25, "Möwe": 3.0}'),
            (
                3,
                'Path("own.csv").write_text("title,price\\nX,1\\n")\nassert read_prices("own.csv") == {"X": 1.0}\n'
                'assert write_report("report.txt", {"B": 2, "A": 1.5}) == 2\n'
                'with open("report.txt") as file:\n    assert file.read().splitlines() == ["A: 1.50", "B: 2.00"]',
            ),
            (1, "import os\nassert os.path.exists('report.txt')\nos.remove('report.txt')"),
        ],
    ),
    (
        "plots",
        """def plot_prices(prices):
    figure, axes = plt.subplots()
    axes.bar(list(prices), list(prices.values()))
    axes.set_title("Prices")
    axes.set_ylabel("euro")
    return axes""",
        [
            (
                2,
                'axes = plot_prices({"Emma": 7.5, "Dune": 9.25})\nassert axes.get_title() == "Prices"\n'
                'assert axes.get_ylabel() == "euro"\nassert len(axes.patches) == 2\nplt.close()',
            ),
            (
                2,
                'axes = plot_prices({"Emma": 7.5, "Dune": 9.25})\n'
                "heights = [bar.get_height() for bar in axes.patches]\n"
                "np.testing.assert_allclose(heights, [7.5, 9.25])\n"
                'assert [t.get_text() for t in axes.get_xticklabels()] == ["Emma", "Dune"]\nplt.close("all")',
            ),
        ],
    ),
    (
        "chance",
        """def draw_winners(readers, count, seed):
    generator = random.Random(seed)
    return generator.sample(readers, count)

def shuffled(readers):
    copy = list(readers)
    random.shuffle(copy)
    return copy

def estimate_pi(n, rng):
    points = rng.random((n, 2))
    return 4 * np.mean((points**2).sum(axis=1) < 1)""",
        [
            (2, 'assert draw_winners(["a", "b", "c", "d"], 2, 7) == random.Random(7).sample(["a", "b", "c", "d"], 2)'),
            (
                2,
                "random.seed(3)\nfirst = shuffled(range(20))\nrandom.seed(3)\nassert shuffled(range(20)) == first\n"
                "assert sorted(first) == list(range(20))\nexpected = list(range(20))\nrandom.seed(3)\n"
                "random.shuffle(expected)\nassert first == expected",
            ),
            (
                2,
                "value = estimate_pi(20_000, np.random.default_rng(0))\nassert abs(value - math.pi) < 0.05\n"
                "### BEGIN HIDDEN TESTS\nassert estimate_pi(500, np.random.default_rng(1)) == "
                "4 * np.mean((np.random.default_rng(1).random((500, 2))**2).sum(axis=1) < 1)\n### END HIDDEN TESTS",
            ),
        ],
    ),
    (
        "classes",
        """class Item:
    count = 0
    def __init__(self, title, price):
        self.title, self._price = title, price
        Item.count += 1
    @property
    def price(self):
        return self._price
    def __eq__(self, other):
        return isinstance(other, Item) and self.title == other.title
    def __hash__(self):
        return hash(self.title)
    def __lt__(self, other):
        return self.title < other.title
    def __repr__(self):
        return f"{type(self).__name__}({self.title!r})"

class Book(Item):
    def __init__(self, title, price, pages):
        super().__init__(title, price)
        self.pages = pages
    def __len__(self):
        return self.pages

class Secondhand(Book):
    @property
    def price(self):
        return round(super().price * 0.6, 2)

class Shelf:
    def __init__(self, *items):
        self.items = list(items)
    def __iter__(self):
        return iter(sorted(self.items))
    def __contains__(self, title):
        return any(item.title == title for item in self.items)
    def __add__(self, other):
        return Shelf(*self.items, *other.items)
    def __getitem__(self, title):
        return next(item for item in self.items if item.title == title)
    def __enter__(self):
        self.open = True
        return self
    def __exit__(self, *exception):
        self.open = False
    def total(self):
        return sum(item.price for item in self)""",
        [
            (
                2,
                'book = Book("Emma", 7.5, 474)\nassert len(book) == 474 and book.price == 7.5\n'
                "assert repr(book) == \"Book('Emma')\"\nassert isinstance(book, Item) and issubclass(Book, Item)",
            ),
            (
                2,
                'old = Secondhand("Emma", 7.5, 474)\nassert old.price == 4.5\nassert old == Book("Emma", 1, 2)\n'
                'assert len({old, Book("Emma", 1, 2)}) == 1\nassert old != Book("Dune", 7.5, 474)',
            ),
            (
                3,
                'shelf = Shelf(Book("Emma", 7.5, 474), Book("Dune", 9.25, 612)) + Shelf(Item("Map", 2))\n'
                'assert [item.title for item in shelf] == ["Dune", "Emma", "Map"]\nassert "Map" in shelf\n'
                'assert "Atlas" not in shelf\nassert shelf["Emma"].pages == 474\nassert shelf.total() == 18.75\n'
                "with shelf as opened:\n    assert opened.open\nassert not shelf.open\n"
                '### BEGIN HIDDEN TESTS\nassert max(shelf).title == "Map"\nbefore = Item.count\nItem("Pen", 1)\n'
                "assert Item.count == before + 1\n### END HIDDEN TESTS",
            ),
            (
                1,
                'class Gift(Book):\n    price = 0\nassert Gift("Emma", 7.5, 474).price == 0\n'
                'assert len(Gift("E", 1, 5)) == 5',
            ),
        ],
    ),
    (
        "counting",
        """def most_frequent(text, n=3):
    return [word for word, _ in Counter(re.findall(r"\\w+", text.lower())).most_common(n)]

def running_mean(numbers):
    total = 0.0
    for i, number in enumerate(numbers, 1):
        total += number
        yield total / i""",
        [
            (
                3,
                'points = 0.0\nif most_frequent("a b a c b a", 2) == ["a", "b"]:\n    points += 1.5\n'
                "if list(running_mean([2, 4, 6])) == [2, 3, 4]:\n    points += 1.5\npoints",
            ),
            (1, "stream = running_mean(iter([1, 2]))\nassert next(stream) == 1 and next(stream) == 1.5"),
        ],
    ),
]

# What a student did differently, by exercise: a replacement in the solution's text.
STUDENTS: dict[str, dict[str, tuple[str, str]]] = {
    "all_right": {},
    "half_done": {
        "titles": ("w.lower() if i and w.lower() in small else w.capitalize()", "w.capitalize()"),
        "errors": ("raise NotOnShelf(title)", "return -1"),
        "counting": ("yield total / i", "yield total"),
    },
    "prints_and_plots": {
        "files": ("    with open", '    print("reading", path)\n    with open'),
        "plots": ("return axes", "plt.show()\n    return plt.gca()"),
        "classes": ("self.pages = pages", "self.pages = pages\n        print(self)"),
    },
    "other_choices": {
        "errors": ("class NotOnShelf(KeyError)", "class NotOnShelf(LookupError)"),
        "chance": ("generator.sample(readers, count)", "[readers[0]] * count"),
        "classes": ("round(super().price * 0.6, 2)", "super().price * 0.6"),
        "files": ("float(row", "int(row"),
        "plots": ("axes.bar(list(prices), list(prices.values()))", "axes.plot(list(prices), list(prices.values()))"),
    },
    "does_not_run": {"titles": ("return", "retrun"), "classes": ("class Shelf:", "class Shelf"), "chance": ("4 *", "")},
    "wrong_in_hidden": {
        "titles": ('r"[ -]"', 'r" "'),
        "chance": ("rng.random((n, 2))", "rng.random((2, n)).T"),
        "classes": ("Item.count += 1", "self.count += 1"),
    },
    "numpy_everywhere": {
        "counting": ("    total = 0.0\n", "    total = np.float64(0)\n"),
        "plots": ("list(prices.values())", "np.array(list(prices.values()))"),
        "files": ("return len(lines)", "return np.int64(len(lines))"),
    },
}


def cells_of(changes: dict[str, tuple[str, str]] | None):
    """The instructor's cells or, with changes, a student's, without the hidden tests."""
    cells = [nbgrader_cell("imports", IMPORTS)]
    cells[0].metadata.nbgrader.update(solution=False, locked=True)
    for name, solution, tests in EXERCISES:
        if changes is None:
            solution = "### BEGIN SOLUTION\n" + solution + "\n### END SOLUTION"
        elif name in changes:
            assert changes[name][0] in solution, name
            solution = solution.replace(*changes[name])
        cells.append(nbgrader_cell(name, solution))
        for number, (points, source) in enumerate(tests):
            if changes is not None:
                source = source.partition("### BEGIN HIDDEN TESTS")[0].rstrip()
            cells.append(nbgrader_cell(f"test_{name}_{number}", source, points))
    for number, cell in enumerate(cells):
        cell.id = f"cell{number}"
    return cells


def write(path: Path, changes: dict[str, tuple[str, str]] | None) -> None:
    path.parent.mkdir(parents=True)
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(new_notebook(cells=cells_of(changes), metadata={"kernelspec": kernel}), path)


def marks(root: Path, command: list[str]) -> dict[str, dict[str, float]]:
    """Each student's marks by test cell, as a command leaves them in the gradebook."""
    from nbgrader.api import Gradebook

    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    with Gradebook(f"sqlite:///{root / 'gradebook.db'}") as gradebook:
        return {
            submission.student.id: {
                grade.name: grade.score for notebook in submission.notebooks for grade in notebook.grades
            }
            for submission in gradebook.assignment_submissions("library")
        }


def test_a_foreign_course_gets_the_marks_that_plain_nbgrader_gives(tmp_path):
    root = tmp_path / "plain"
    write(root / "source" / "library" / "books.ipynb", None)
    (root / "source" / "library" / "prices.csv").write_text("title,price\nEmma,7.5\nDune,9.25\nMöwe,3\n", "utf-8")
    (root / "nbgrader_config.py").write_text("c = get_config()\nc.CourseDirectory.course_id = 'library'\n")
    for student, changes in STUDENTS.items():
        write(root / "submitted" / student / "library" / "books.ipynb", changes)
    with open_course(root) as course:
        generate_assignment(course, "library")
    ours = shutil.copytree(root, tmp_path / "ours")
    expected = marks(root, [sys.executable, "-m", "nbgrader", "autograde", "library"])
    grade = [sys.executable, "-m", "autograder.cli", "grade", "library", "--course", str(ours), "--workers", "1"]
    found = marks(ours, grade)
    differing = {
        (student, cell): (points, found[student][cell])
        for student, cells in expected.items()
        for cell, points in cells.items()
        if found[student][cell] != points
    }
    assert differing == {}
    full = sum(points for _, _, tests in EXERCISES for points, _ in tests)
    assert sum(expected["all_right"].values()) == full
    assert all(sum(cells.values()) < full for student, cells in expected.items() if student == "half_done")
