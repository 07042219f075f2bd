"""`autograder new`: writes the folder of a small lesson that passes every gate, as the start of your own lesson."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from pathlib import Path

from autograder.course_folder import COURSE
from autograder.files import write_file
from autograder.lessons.builder.case_files import cases_file
from autograder.lessons.builder.lesson_files import MISTAKES as MISTAKES_FILE
from autograder.lessons.builder.lesson_files import STYLES

NAME = re.compile(r"(?:(\d\d)_)?([a-z][a-z0-9_]*)")
BAD_NAME = "{!r} is not a valid name. Use lowercase letters, digits and underscores, such as my_lesson or 17_my_lesson."
TEXT = '''# %% [markdown]
# # TITLE
#
# *About 5 minutes. You build a function; put what your lesson builds here.*
#
# Say in two sentences what students can do at the end of this lesson, and let them run something at once.

# %%
from autograder.student import check, hints

# %%
h = 1e-6
print("the slope of x**2 at 3 is about", ((3 + h) ** 2 - 3**2) / h)

# %% [markdown]
# ### Exercise 1: the slope of a square
#
# Write a function that returns the derivative of $x^2$.

# %% [markdown] tags=["hint"] exercise="slope"
# Compare the number above with 3. Try other places.

# %% solution="slope"
def slope(x):
    """The derivative of x**2. `x` is a number; `slope(3.0)` is 6.0."""
    ### BEGIN SOLUTION
    return 2 * x
    ### END SOLUTION


# %% check="slope"

# %% [markdown]
# ## What you know now
#
# Say in three sentences what students know now, and what the next lesson needs of it.
'''


STYLE = """# %% tags=["style:addition"] exercise="slope"
def slope(x):
    return x + x
"""
CASES = '''"""What the exercises of this lesson must do, case by case.

A case is a title (`# ...`), its steps (`>>> ...`), and what is right below each. The steps above the first title begin
every case of the exercise, with names of its own. For instructors, docs/authors.md says more, under "Cases".
"""

from autograder.checks.cases import Check
from autograder.runs.inputs import between

check = Check("slope")
check.cases("""
# a positive number
>>> slope(3.0)
6.0

# 0, and a negative number
>>> slope(0.0), slope(-1.5)
(0.0, -3.0)
""")
check.handwritten("slope", lambda x: x**2, [between(5.0, 9.0)], points=2, hidden=True)
'''
MISTAKES = """\
Mistakes that learners make in this lesson. A block begins with `# %%` and what is wrong, in the words of the card. Then
come the test cells that must notice it, and what becomes of the solution: its lines (-), and the learner's (+).
The lines after - stand exactly once in the lesson's solutions. More: docs/authors.md, under "Mistakes".

# %% the exponent is lost
costs: test_slope
-return 2 * x
+return x

# %% the power does not go down
says: the exponent comes down in front, but the power stays: it has to go down by one
costs: test_slope
-return 2 * x
+return 2 * x**2
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("lesson", help="a name such as my_lesson; it gets the next free number unless it has one")
    parser.add_argument("--course", type=Path, default=COURSE, metavar="DIR", help="the course's folder")


def run(arguments: argparse.Namespace) -> int:
    """Write the text and say what to do next. Returns 2 for a name that cannot be used."""
    name = NAME.fullmatch(arguments.lesson)
    course, folder = arguments.course, arguments.course / "lessons"
    if not course.is_dir():
        print(f"autograder new: there is no folder {course}. Make it first, or correct --course.", file=sys.stderr)
        return 2
    if name is None:
        print(f"autograder new: {BAD_NAME.format(arguments.lesson)}", file=sys.stderr)
        return 2
    taken = sorted(path.name for path in folder.glob("[0-9][0-9]_*"))
    number = name[1] or f"{max((int(stem[:2]) for stem in taken), default=-1) + 1:02}"
    if clash := [stem for stem in taken if stem.startswith(f"{number}_")]:
        print(f"autograder new: the course has {clash[0]} already. Choose another number.", file=sys.stderr)
        return 2
    stem = f"{number}_{name[2]}"
    target = folder / stem / f"{stem}.py"
    title = name[2].replace("_", " ").capitalize()
    try:
        write_file(target, TEXT.replace("TITLE", title).encode())
        write_file(target.with_name(STYLES), STYLE.encode())
        write_file(cases_file(target), CASES.encode())
        write_file(target.with_name(MISTAKES_FILE), MISTAKES.encode())
    except OSError as error:
        print(f"autograder new: {target} cannot be written: {error.strerror or error}.", file=sys.stderr)
        return 2
    where = "" if course == COURSE else f" --course {shlex.quote(str(course))}"
    commands = f"autograder build {number}{where} && autograder audit {number}{where}"
    print(f"{target}\nNow change the text, and run: {commands}")
    return 0
