"""What the cell of an exercise did last is said before anything about its test, in a real kernel."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_client.manager import KernelManager
from nbconvert.filters import strip_ansi
from nbformat.v4 import new_code_cell, new_notebook

from autograder.lessons.builder.lesson_files import place_files
from autograder.lessons.builder.notebook import assemble, notebook_text
from autograder.lessons.release import release_notebook
from autograder.lessons.student.exercises import next_after
from autograder.lessons.student.lab import server_environment
from autograder.notebooks.cells import grade_id, has_tag, is_code, is_code_solution, is_test

LESSONS = Path(__file__).parents[3] / "course" / "lessons"
RIGHT = "def product_rule(a, b, gradient):\n    return gradient * b, gradient * a"
SAVED = """
import json
from pathlib import Path

path = Path("00_start_here.ipynb")
notebook = json.loads(path.read_text())
for cell in list(notebook["cells"]):
    if cell["metadata"].get("nbgrader", {}).get("grade_id") == "product_rule":
        CHANGE
path.write_text(json.dumps(notebook))
"""
CHANGED = SAVED.replace("CHANGE", 'cell["source"] = "product_rule = 1"')
DELETED = SAVED.replace("CHANGE", 'notebook["cells"].remove(cell)')
STEPS = {
    "not run": ("", "it was not run since the kernel started"),
    "no Python": (RIGHT.replace("b,", "b),", 1) + ")", "it stopped with SyntaxError: unmatched ')' (line"),
    "an error": ("1 / 0\n" + RIGHT, "it stopped with ZeroDivisionError: division by zero when it last ran"),
    "misspelled": (RIGHT.replace("rule", "rul"), "did not define `product_rule`, only `product_rul`"),
    "not written": (RIGHT.replace("return", "raise NotImplementedError\n    return"), ""),
    "right": (RIGHT, ""),
    "right once": (RIGHT + ")", "it stopped with SyntaxError: unmatched ')' (line 2)"),
    "right again": ("product_rule = lambda a, b, gradient: (b * gradient, a * gradient)", ""),
    "changed": (CHANGED, "it was changed after it last ran"),
    "deleted": (DELETED, "it is no longer in your notebook"),
}


TOP = {
    "typo": "print(weigth)",
    "imports": "# Run this cell: it imports\nimport math\nfrom autograder.student import progress",
    "below": "print(later)",
    "engine": "start_lesson('sealed')",
    "test": "# Run this cell to check your answer (1 point).\nassert MiniTensor(half(2.0))",
    "exercise": "def half(x):\n    return x / 2",
    "progress": "progress()",
    "binds it": "later = math.pi",
}
NOT_RUN = {
    "progress": "`# Run this cell: it imports` has not run",
    "test": "`start_lesson('sealed')` has not run",
}


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """The outputs of the test of lesson 00 after each step."""
    folder = tmp_path_factory.mktemp("lessons") / "00_start_here"
    folder.mkdir()
    text = LESSONS / "00_start_here" / "00_start_here.py"
    place_files(text, LESSONS.parent, folder)
    lesson = release_notebook(assemble(text))
    (folder / "00_start_here.ipynb").write_text(notebook_text(lesson))
    given = [cell for cell in lesson.cells if is_code(cell) and not has_tag(cell, "demo")]
    before = given[: next(number for number, cell in enumerate(given) if is_code_solution(cell))]
    (test,) = (cell for cell in given if grade_id(cell) == "test_product_rule")
    shown = {}
    with kernel_in(folder) as run:
        for cell in before:
            if "hints(" not in cell.source:
                run(cell.source, cell.id)
        for name, (source, _) in STEPS.items():
            run(source, "a cell of my own" if source in (CHANGED, DELETED) else "product_rule")
            shown[name] = run(test.source, test.id)
    return shown


@contextlib.contextmanager
def kernel_in(folder: Path, **options: Any) -> Iterator[Callable[[str, str], list[dict[str, Any]]]]:
    """A function that runs the cell with an id, as JupyterLab does, and returns the contents of its outputs."""
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(cwd=str(folder), **options)
    client = manager.client()
    client.start_channels()

    def run(source: str, name: str) -> list[dict[str, Any]]:
        content = {"code": source, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False}
        message = client.session.msg("execute_request", content, metadata={"cellId": name})
        client.shell_channel.send(message)
        found = []
        while True:
            reply = client.get_iopub_msg(timeout=60)
            if reply["parent_header"].get("msg_id") == message["header"]["msg_id"]:
                if reply["content"].get("execution_state") == "idle":
                    return found
                found += [reply["content"]] if reply["msg_type"] in ("display_data", "execute_result", "error") else []

    try:
        client.wait_for_ready(timeout=60)
        yield run
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


@pytest.mark.parametrize("step", STEPS)
def test_what_the_cell_did_last_is_said_first(step: str, shown: dict[str, list[dict[str, Any]]]) -> None:
    first, *others = (output["data"]["text/plain"] for output in shown[step] if "data" in output)
    said = STEPS[step][1]
    assert said in first
    assert first.startswith("First look at the cell of the exercise `product_rule`") == bool(said)
    assert others or not said, "the card comes after it"


@pytest.mark.parametrize("step", ["not run", "no Python", "an error", "misspelled"])
def test_a_function_of_somebody_else_is_not_blamed(step: str, shown: dict[str, list[dict[str, Any]]]) -> None:
    assert "its own value" not in str(shown[step])
    assert "swapped" not in str(shown[step])
    assert "0 of 1 point" in str(shown[step])


def test_every_test_of_an_exercise_names_it() -> None:
    for path in sorted(LESSONS.glob("*/[0-9]*.py")):
        for cell in assemble(path).cells:
            assert not is_test(cell) or cell.metadata["exercises"], grade_id(cell)


def test_a_name_of_a_cell_that_did_not_run_is_explained_even_in_a_kernel_that_has_imported_nothing(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "lesson"
    folder.mkdir()
    nbformat.write(new_notebook(cells=[new_code_cell(source) for source in TOP.values()]), folder / "lesson.ipynb")
    with kernel_in(folder, env=server_environment(tmp_path)) as run:

        def said(name: str) -> str:
            return strip_ansi("\n".join(run(TOP[name], name)[0]["traceback"]))

        assert "has not run" not in said("typo")
        for name, words in NOT_RUN.items():
            assert f"{words} since Python started" in said(name)
            assert "Run All Above Selected Cell" in said(name)
        assert "half(" not in said("test"), "a check shows nothing of its code"
        assert run(TOP["imports"], "imports") == []
        assert "has not run" not in said("below"), "the cell that binds it is further down"


def test_a_right_check_says_what_comes_next_and_a_wrong_one_does_not(shown: dict[str, list[dict[str, Any]]]) -> None:
    said = "Next: 4. The machine, as a kitchen. Then: 8. Quiz."
    for step, outputs in shown.items():
        texts = [output["data"]["text/plain"] for output in outputs if "data" in output]
        assert (texts[-1] == said) == (step in ("right", "right again")), step
        assert said not in texts[:-1]


def test_the_last_check_of_an_exercise_says_what_comes_next_in_every_lesson() -> None:
    for path in sorted(LESSONS.glob("*/[0-9]*.py")):
        cells = release_notebook(assemble(path)).cells
        tests = [cell for cell in cells if is_test(cell)]
        for cell, following in zip(tests, [*tests[1:], None], strict=True):
            own, later = (set(each.metadata["exercises"]) if each else set() for each in (cell, following))
            quiz = any(name.endswith("_answers") for name in own)
            assert bool(next_after(cell, cells)) == (not quiz and not own & later), grade_id(cell)
