"""Makes this folder an nbgrader course whose submissions our autograder judges. nbgrader's manual has every option."""

from pathlib import Path

from autograder.nbgrader_plugins import configure

c = get_config()  # noqa: F821  (nbgrader provides it)

c.CourseDirectory.course_id = "mini-autograd"
c.CourseDirectory.root = str(Path(__file__).resolve().parent)

configure(c)
