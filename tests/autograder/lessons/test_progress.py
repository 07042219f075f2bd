"""`progress()`: the state of each exercise according to the outputs of the saved notebooks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from autograder.lessons.student.lab import first_to_open
from autograder.lessons.student.progress import ExerciseProgress, progress_of, read_progress
from autograder.quizzes.sealing import Answer, held_back, seal_quiz
from autograder.student import progress

STUB = 'def power(a, n):\n    """a ** n"""\n    # YOUR CODE HERE\n    raise NotImplementedError()'
SOLVED = "def power(a, n):\n    return a ** n"
CARD = '<div><span style="color:#111">1 of 2 points</span></div><div><span style="c">0 of 1 points</span></div>'
PASSED = [{"output_type": "display_data", "data": {"text/html": ["<div>"], "text/plain": ["2 of 2 points"]}}]
PARTLY = [{"output_type": "execute_result", "data": {"text/html": [CARD], "text/plain": ["1.0"]}}]
NUMBER = [{"output_type": "execute_result", "data": {"text/plain": ["1.5"]}}]
FAILED = [{"output_type": "error", "ename": "AssertionError", "evalue": "", "traceback": []}]


def markdown(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": text.splitlines(True)}


def code(name: str, source: str, outputs: list[Any] | None = None, points: float = 0) -> dict[str, Any]:
    """A solution cell or, with points, a test cell. If `outputs` is None, it was not run."""
    marks = {"grade_id": name, "grade": bool(points), "solution": not points, "points": points or None}
    count = None if outputs is None else 3
    cell = {"cell_type": "code", "metadata": {"nbgrader": marks}, "source": source, "outputs": outputs or []}
    return {**cell, "execution_count": count}


def write(folder: Path, name: str, *cells: dict[str, Any]) -> Path:
    path = folder / name / f"{name}.ipynb"
    path.parent.mkdir()
    path.write_text(json.dumps({"cells": [markdown("# An engine\n\ntext"), *cells], "nbformat": 4}))
    return path


@pytest.mark.parametrize(
    ("solution", "outputs", "expected"),
    [
        (STUB, None, ("not started", None)),
        (STUB, FAILED, ("not started", None)),
        (SOLVED, None, ("not yet", (0.0, 4.0))),
        (SOLVED, FAILED, ("not yet", (0.0, 4.0))),
        (SOLVED, PARTLY, ("not yet", (1.0, 4.0))),
        (SOLVED, NUMBER, ("not yet", (1.5, 4.0))),
        (SOLVED, PASSED, ("done", None)),
        (SOLVED, [], ("done", None)),  # assertions that hold show nothing
    ],
)
def test_an_exercise_is_read_from_its_outputs(
    solution: str, outputs: list[Any] | None, expected: tuple[str, Any], tmp_path: Path
) -> None:
    cells = [markdown("### Exercise 3: power\ntext"), markdown("more"), code("power", solution, [])]
    read = read_progress(write(tmp_path, "02_engine", *cells, code("test_power", "check", outputs, 4)))
    assert read is not None
    assert (read.number, read.title) == ("02", "An engine")
    assert read.exercises == (ExerciseProgress("Exercise 3: power", *expected),)


def test_several_tests_of_one_exercise_count_together(tmp_path: Path) -> None:
    cells = [code("power", SOLVED, []), code("one", "", PASSED, 2), code("two", "", FAILED, 3), code("3", "", [], 1)]
    read = read_progress(write(tmp_path, "02_engine", markdown("## Power"), *cells))
    assert read is not None
    assert read.exercises == (ExerciseProgress("Power", "not yet", (3.0, 6.0)),)


@pytest.mark.parametrize(
    ("answers", "outputs", "state"),
    [
        ('quiz_02_answers = {\n    "a": "",\n    "b": "",\n}', PARTLY, "not started"),
        ('quiz_02_answers = {\n    "a": "c",\n    "b": "",\n}', PARTLY, "not yet"),
        ('quiz_02_answers = {\n    "a": "c",\n    "b": "a",\n}', PASSED, "done"),
    ],
)
def test_a_quiz_is_read_too(answers: str, outputs: list[Any], state: str, tmp_path: Path) -> None:
    cells = [markdown("## Quiz"), code("quiz_02_answers", answers, []), code("quiz_02", "quiz(...)", outputs, 4)]
    read = read_progress(write(tmp_path, "02_engine", *cells))
    assert read is not None
    assert [(quiz.title, quiz.state, quiz.is_quiz) for quiz in read.exercises] == [("Quiz", state, True)]


@pytest.mark.parametrize(
    ("answers", "state", "points"),
    [
        ('quiz_02_answers = {\n    "a": "",\n    "b.c": "",\n}', "not started", None),
        ('quiz_02_answers = {\n    "a": "b",  # question 1\n    "b.c": "x",\n}', "not yet", (2.0, 4.0)),
        ('quiz_02_answers = {\n    "a": "a",\n    "b.c": "a",\n}\nquiz_02_answers["a"] = "B "', "done", (4.0, 4.0)),
    ],
)
def test_a_quiz_counts_by_its_letters_even_when_it_was_not_run_again(
    answers: str, state: str, points: Any, tmp_path: Path
) -> None:
    right, wrong = Answer(True, "yes"), Answer(False, "no")
    sealed = seal_quiz({"a": {"a": wrong, "b": right}, "b.c": {"a": right, "b": wrong}})
    check = code("quiz_02", f'quiz(quiz_02_answers, points=4, sealed="{sealed}")', PARTLY, 4)
    read = read_progress(write(tmp_path, "02_engine", markdown("## Quiz"), code("quiz_02_answers", answers, []), check))
    assert read is not None
    assert read.exercises == (ExerciseProgress("Quiz", state, points, is_quiz=True),)


@pytest.mark.parametrize(
    ("letters", "state"), [(("", ""), "not started"), (("b", ""), "not yet"), (("b", "a"), "done")]
)
def test_a_quiz_whose_answers_are_held_back_is_done_when_it_is_answered(
    letters: tuple[str, str], state: str, tmp_path: Path
) -> None:
    options = {"a": Answer(False, "no"), "b": Answer(True, "yes")}
    sealed = held_back(seal_quiz({"one": options, "two": options}, {"one": "?", "two": "?"}))
    answers = 'quiz_02_answers = {{\n    "one": "{}",\n    "two": "{}",\n}}'.format(*letters)
    check = code("quiz_02", f'quiz(quiz_02_answers, points=4, sealed="{sealed}")', PARTLY, 4)
    read = read_progress(write(tmp_path, "02_engine", markdown("## Quiz"), code("quiz_02_answers", answers, []), check))
    assert read is not None
    assert read.exercises == (ExerciseProgress("Quiz", state, None, is_quiz=True),)
    assert read.summary == f"quiz {state}"


def test_two_quizzes_of_a_lesson_have_names(tmp_path: Path) -> None:
    cells = [
        *(markdown("## 8. Quiz"), code("quiz_10_answers", "{}", []), code("quiz_10", "quiz(...)", PASSED, 2)),
        markdown("## Looking back: twelve questions"),
        *(code("quiz_back_answers", "{}", []), code("quiz_back", "quiz(...)", None, 4)),
    ]
    read = read_progress(write(tmp_path, "10_second", *cells))
    assert read is not None
    assert read.summary == "quiz 2 of 2 points, looking back not started"


def test_all_lessons_of_the_folder_are_shown_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, "00_start_here")
    done = [code("power", SOLVED, []), code("test_power", "", PASSED, 2)]
    path = write(tmp_path, "01_first", markdown("### Exercise 1: <b>slopes</b>"), *done)
    path.with_name("01_first (update 2030-01-01).ipynb").write_text(path.read_text())
    write(tmp_path, "02_second", markdown("### Exercise 1: power"), code("power", STUB), code("t", "", None, 2))
    (tmp_path / "03_broken").mkdir()
    (tmp_path / "03_broken" / "03_broken.ipynb").write_text("{")
    monkeypatch.chdir(tmp_path / "01_first")
    progress()
    lines = capsys.readouterr().out.splitlines()
    assert lines[:5] == [
        "Next: lesson 02, An engine. Exercise 1: power.",
        "00  An engine: nothing to hand in",
        "01  An engine: 1 of 1 exercises done",
        "      done         Exercise 1: <b>slopes</b>",
        "02  An engine: 0 of 1 exercises done",
    ]
    assert len(lines) == 6
    page = progress_of(Path.cwd()).html()
    assert page.count("<details") == 3
    assert page.count("<details open") == 1
    assert "&lt;b&gt;slopes" in page


def test_what_comes_next_is_the_first_thing_that_is_not_done_and_not_optional(tmp_path: Path) -> None:
    def lesson(name: str, solution: str) -> None:
        exercise = [markdown("### Exercise 1: power"), code("power", solution)]
        exercise.append(code("t1", "", PASSED if solution == SOLVED else None, 2))
        optional = [markdown("# Further"), markdown("### Exercise 2: log"), code("log", STUB), code("t2", "", None, 2)]
        write(tmp_path, name, *exercise, *optional)

    lesson("01_first", SOLVED)
    lesson("02_second", STUB)
    lesson("03_third", SOLVED)
    assert progress_of(tmp_path / "01_first").next_step == "Next: lesson 02, An engine. Exercise 1: power."
    assert progress_of(tmp_path / "02_second").next_step == "Next: Exercise 1: power."
    assert progress_of(tmp_path / "03_third").next_step == "Everything from this lesson on is done."
    assert progress_of(tmp_path / "02_second").so_far == ""
    lines = "This lesson so far: 1 of 2 exercises done. Everything from this lesson on is done."
    assert progress_of(tmp_path / "03_third").so_far == lines
    assert "not started  Exercise 2: log (optional)" in progress_of(tmp_path / "01_first").text()


def test_a_lesson_that_is_begun_has_a_line_at_its_top(tmp_path: Path, monkeypatch, capsys) -> None:
    tests = [code("power", SOLVED), code("t1", "", PASSED, 2), code("log", STUB), code("t2", "", None, 2)]
    write(tmp_path, "01_first", markdown("### Exercise 1: power"), *tests)
    write(tmp_path, "02_second", markdown("### Exercise 1: power"), *tests[2:])
    for lesson, shown in (("01_first", "This lesson so far: 1 of 2 exercises done."), ("02_second", "")):
        monkeypatch.chdir(tmp_path / lesson)
        progress(short=True)
        printed = capsys.readouterr().out
        assert printed.startswith(shown)
        assert bool(printed) == bool(shown)


def test_from_the_folder_of_all_lessons_it_works_too(tmp_path: Path) -> None:
    folder = tmp_path / "lessons"
    folder.mkdir()
    write(folder, "01_first")
    assert [lesson.number for lesson in progress_of(folder).lessons] == ["01"]


def test_a_folder_without_lessons_says_so(tmp_path: Path) -> None:
    assert progress_of(tmp_path / "nowhere").text() == "There are no lessons in the folder above this notebook."


def test_a_deleted_exercise_still_counts_and_says_so(tmp_path: Path) -> None:
    test = code("test_power", "check", PASSED, 4)
    test["metadata"]["exercises"] = {"power": ["power"]}
    cells = [
        markdown("### Exercise 1: power"),
        code("power", SOLVED, []),
        test,
        markdown("### Exercise 2: roots"),
        test,
    ]
    read = read_progress(write(tmp_path, "02_engine", *cells[:1], *cells[2:]))
    assert read is not None
    assert [(e.title, e.state) for e in read.exercises] == [("Exercise 1: power (its cell was deleted)", "not yet")]
    (tmp_path / "02_engine" / "02_engine.ipynb").unlink()
    (tmp_path / "02_engine").rmdir()
    read = read_progress(write(tmp_path, "02_engine", *cells))
    assert read is not None
    assert [(e.title, e.state) for e in read.exercises] == [("Exercise 1: power", "done")]


def test_other_lessons_and_the_next_step_are_links(tmp_path: Path) -> None:
    done = [code("power", SOLVED, []), code("test_power", "check", PASSED, 4)]
    write(tmp_path, "01_first", markdown("## Power"), *done)
    write(tmp_path, "02_second", markdown("## Power"), code("power", STUB), code("test_power", "check", None, 4))
    link = '<a href="../02_second/02_second.ipynb">'
    page = progress_of(tmp_path / "01_first").html()
    assert page.count(link) == 2
    assert f"{link}Next: lesson 02" in page
    assert '<a href="../01_first' not in page
    assert f"{link.replace('../', '')}open 02</a>" in progress_of(tmp_path).html()
    notebooks = [tmp_path / name / f"{name}.ipynb" for name in ("01_first", "02_second")]
    assert first_to_open(notebooks) == notebooks[1]
    assert first_to_open(notebooks[:1]) == notebooks[0]
    assert first_to_open([]) is None
