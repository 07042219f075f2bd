"""Says when a lesson's text has been changed and the source notebook has not been built from it again."""

from __future__ import annotations

from shlex import quote

from autograder.grading.course import Course
from autograder.lessons.builder.lesson_files import FURTHER

AHEAD = (
    "lessons/{0}/{0}.py has changed since source/{1} was built from it, so the change is not graded. Run `autograder "
    "build {0}` and `nbgrader generate_assignment {1} --force`, and grade again."
)
UNUSABLE = "lessons/{0}/{0}.py has changed since source/{0} was built from it, and cannot be built: {1}"


def text_ahead(course: Course, assignment: str) -> list[str]:
    """A sentence if building the lesson again would change its source. Only a file that is newer than the source is a
    reason to look: building takes a second.
    """
    lesson = assignment.removesuffix(FURTHER)
    text = course.root / "lessons" / lesson / f"{lesson}.py"
    source = course.folder("source", ".", assignment) / f"{assignment}.ipynb"
    if quote(assignment) != assignment or not text.is_file() or not source.is_file():
        return []
    built = source.stat().st_mtime_ns
    if all(path.stat().st_mtime_ns <= built for path in text.parent.iterdir()):
        return []
    from autograder.lessons.builder.lesson_files import LessonTextError, files_beside
    from autograder.lessons.builder.notebook import assignments, notebook_text
    from autograder.lessons.builder.paths import asks_questions

    try:
        notebooks = assignments(text, asks_questions(course.root))
        if assignment not in notebooks:
            return []
        made = {source.name: notebook_text(notebooks[assignment]).encode(), **files_beside(text, course.root)}
    except LessonTextError as error:
        return [UNUSABLE.format(lesson, error)]
    there = ((source.parent / name, content) for name, content in made.items())
    same = all(path.is_file() and path.read_bytes() == content for path, content in there)
    return [] if same else [AHEAD.format(lesson, assignment)]
