"""`start_lesson`: which engine a lesson gets on a laptop and in grading, whatever is wrong with the student's own."""

from __future__ import annotations

import linecache
import shutil
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from nbformat import NotebookNode
from traitlets.config import Config

from autograder.files import files_below
from autograder.judge.judge import judge_notebook
from autograder.lessons.audit import variants
from autograder.lessons.builder.notebook import assemble, notebook_text
from autograder.lessons.release import release_notebook
from autograder.lessons.student import starting
from autograder.notebooks.cells import grade_id
from autograder.sandbox.files import readable
from autograder.sandbox.inside import engine_file
from autograder.sandbox.process.isolation import isolation_available
from autograder.sandbox.process.limits import Limits
from autograder.sandbox.process.process import start_confined, start_unsafe

HERE = Path(__file__).parent
OWN = "Using your own engine of lesson 02."
REFERENCE = "Using the reference engine of lesson 02: "
INSIST = " To use yours anyway, run start_lesson(own=True)."
Change = tuple[str, str, str]


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, NotebookNode]:
    lessons = tmp_path_factory.mktemp("course") / "lessons"
    for name in ("02_numbers", "03_more"):
        (lessons / name).mkdir(parents=True)
    shutil.copy(HERE / "engine_lesson.txt", lessons / "02_numbers" / "02_numbers.py")
    shutil.copy(HERE / "next_lesson.txt", lessons / "03_more" / "03_more.py")
    return {path.stem: assemble(path) for path in sorted(lessons.glob("*/*.py"))}


def students(source: NotebookNode, *changes: Change) -> NotebookNode:
    """A student's notebook, solved and without solution markers, after the changes (grade_id, old, new)."""
    notebook = variants.solved_release(source)
    for cell in notebook.cells:
        lines = cell.source.splitlines(True)
        if cell.cell_type == "code":
            cell.source = "".join(line for line in lines if "### " not in line or "# ###" in line)
    for name, old, new in changes:
        (cell,) = (cell for cell in notebook.cells if grade_id(cell) == name)
        assert old in cell.source
        cell.source = cell.source.replace(old, new)
    return notebook


class Desk:
    """A student's folder, and what happens when lesson 03 is opened in it."""

    def __init__(self, folder: Path, sources: dict[str, NotebookNode]) -> None:
        self.folder, self.sources = folder, sources
        self.here = folder / "03_more"
        self.here.mkdir()

    @property
    def engine_file(self) -> Path:
        return self.here / "engine.py"

    def put(self, notebook: NotebookNode) -> None:
        path = self.folder / "02_numbers" / "02_numbers.ipynb"
        path.parent.mkdir(exist_ok=True)
        path.write_text(notebook_text(notebook))

    def start(self, *more: str) -> dict[str, Any]:
        """Run the first cell of lesson 03, and then some lines."""
        names: dict[str, Any] = {"__name__": "__main__"}
        for source in (self.sources["03_more"].cells[0].source, *more):
            exec(compile(source, "<cell>", "exec"), names)
        return names


@pytest.fixture
def desk(tmp_path: Path, sources: dict[str, NotebookNode], monkeypatch: pytest.MonkeyPatch) -> Desk:
    made = Desk(tmp_path, sources)
    monkeypatch.chdir(made.here)
    monkeypatch.setattr(engine_file, "LAST", [])
    return made


def test_the_own_engine_is_used_and_handed_in(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    desk.put(students(desk.sources["02_numbers"], ("exponential", "output = ", "mine = output = ")))
    names = desk.start()
    assert capsys.readouterr().out == f"{OWN}\n"
    assert "mine = output" in desk.engine_file.read_text()
    assert names["MiniTensor"](3.0).exp().data == pytest.approx(20.0855369)
    assert not {"answer", "credit", "LIMIT"} & set(names)


EARLY = "raise NotImplementedError"
WRONG: dict[str, tuple[tuple[Change, ...], str]] = {
    "one wrong rule": (
        (("product", "grad * b.data,", "grad,"),),
        "yours does not pass these checks yet: Exercise 1: product.",
    ),
    "all unsolved": (
        (
            ("product", "    def rule", f"    {EARLY}\n    def rule"),
            ("exponential", "output = ", f"{EARLY}\n    output = "),
        ),
        "yours does not pass these checks yet: Exercise 1: product; Exercise 2: exp.",
    ),
    "no Python": (
        (("product", "def rule(grad):", "def rule(grad)"),),
        "yours is not valid Python in the cell `product`, line 2: expected ':'.",
    ),
    "stops at once": ((("product", "def product", "1 / 0\ndef product"),), "yours does not run (ZeroDivisionError: "),
    "leaves": ((("product", "def product", "raise SystemExit\ndef product"),), "yours does not run (SystemExit)."),
    "nothing said": (
        (("product", "def product", "raise NotImplementedError\ndef product"),),
        "yours does not run (NotImplementedError).",
    ),
    "changed test": (
        (("test_product", "credit", "1 / 0\ncredit"),),
        "yours does not pass these checks yet: Exercise 1: product.",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_engine_that_is_not_right_yet_is_replaced_by_the_reference(
    name: str, desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    changes, reason = WRONG[name]
    desk.put(students(desk.sources["02_numbers"], *changes))
    names = desk.start()
    out = capsys.readouterr().out
    assert out.startswith(REFERENCE + reason)
    assert out.endswith(f".{INSIST}\n") == (name != "no Python"), "insisting does not help there"
    assert out.count("\n") == 1
    assert not desk.engine_file.exists()
    a, b = names["MiniTensor"](3.0), names["MiniTensor"](2.0)
    (a * b).backward()
    assert (a.grad, b.grad) == (2.0, 3.0)


def test_a_test_that_was_deleted_is_said_to_be_missing(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    notebook = students(desk.sources["02_numbers"])
    notebook.cells = [cell for cell in notebook.cells if grade_id(cell) != "test_product"]
    desk.put(notebook)
    desk.start()
    said = "yours does not pass these checks yet: the test cell `test_product`, which is no longer in your notebook."
    assert capsys.readouterr().out.startswith(REFERENCE + said)


def test_an_exercise_that_is_no_part_of_the_engine_does_not_count(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.put(students(desk.sources["02_numbers"], ("answer", "42", "43")))
    desk.start()
    assert capsys.readouterr().out == f"{OWN}\n"


@pytest.mark.parametrize("solved", [False, True])
def test_an_optional_exercise_that_is_not_solved_comes_from_the_reference(
    solved: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lessons = tmp_path / "course" / "lessons"
    for name in ("02_numbers", "03_more"):
        (lessons / name).mkdir(parents=True)
    text = (
        (HERE / "engine_lesson.txt")
        .read_text()
        .replace("# ### Exercise 2: exp", "# # Further\n#\n# ### Exercise 2: exp")
    )
    (lessons / "02_numbers" / "02_numbers.py").write_text(text)
    shutil.copy(HERE / "next_lesson.txt", lessons / "03_more" / "03_more.py")
    desk = Desk(tmp_path, {path.stem: assemble(path) for path in lessons.glob("*/*.py")})
    monkeypatch.chdir(desk.here)
    monkeypatch.setattr(engine_file, "LAST", [])
    changes = [("product", "return MiniTensor", "mine = 1\n    return MiniTensor")]
    changes += [("exponential", "output = ", "mine = output = " if solved else f"{EARLY}\n    output = ")]
    desk.put(students(desk.sources["02_numbers"], *changes))
    names = desk.start()
    assert capsys.readouterr().out == f"{OWN}\n"
    assert names["MiniTensor"](3.0).exp().data == pytest.approx(20.0855369)
    assert ("mine = output" in desk.engine_file.read_text()) is solved
    assert "mine = 1" in desk.engine_file.read_text()


@pytest.mark.parametrize("there", ["absent", "not begun", "begun"])
def test_a_lesson_that_was_skipped_comes_from_the_reference(
    there: str, desk: Desk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    lessons = tmp_path / "course" / "lessons"
    for name, text in (("02_numbers", "engine"), ("03_more", "next"), ("04_last", "next")):
        (lessons / name).mkdir(parents=True)
        source = (HERE / f"{text}_lesson.txt").read_text()
        source = source.replace("square", "cube") if name == "04_last" else source
        source = source.replace("# ### Exercise 2: exp", "# # Further\n#\n# ### Exercise 2: exp")
        (lessons / name / f"{name}.py").write_text(source)
    mine = ("product", "return MiniTensor", "mine = 1\n    return MiniTensor")
    desk.put(students(desk.sources["02_numbers"], mine, ("exponential", "output = ", f"{EARLY}\n    output = ")))
    if there != "absent":
        stub = (
            "def square(a):\n    raise NotImplementedError" if there == "not begun" else "def square(a):\n    return a"
        )
        notebook = students(desk.sources["03_more"], ("square", "def square(a):\n    return product(a, a)", stub))
        (desk.here / "03_more.ipynb").write_text(notebook_text(notebook))
    here = tmp_path / "04_last"
    here.mkdir()
    monkeypatch.chdir(here)
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(assemble(lessons / "04_last" / "04_last.py").cells[0].source, "<cell>", "exec"), names)
    said = capsys.readouterr().out
    assert names["square"](names["MiniTensor"](3.0)).data == 9.0
    assert names["MiniTensor"](0.0).exp().data == 1.0, "an optional exercise that was left out"
    if there == "begun":
        assert said.startswith("Using the reference engine of lesson 03: yours does not pass these checks yet")
        assert not (here / "engine.py").exists()
    else:
        skipped = "What lesson 03 adds comes from the reference: you have not begun it."
        assert said == f"Using your own engine of lesson 02. {skipped}\n"
        assert "mine = 1" in (here / "engine.py").read_text()


def endless(notebook: NotebookNode) -> NotebookNode:
    for cell in notebook.cells:
        cell.source = cell.source.replace(
            "output = math.exp(a.data)",
            "while True:\n        try:\n            pass\n        except:\n            pass",
        )
    return notebook


def test_an_endless_engine_does_not_hang_the_next_lesson(
    desk: Desk, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starting, "SECONDS", 1.0)
    desk.put(endless(students(desk.sources["02_numbers"])))
    desk.start()
    assert "the checks of your engine did not finish within 1 seconds" in capsys.readouterr().out


ELSEWHERE: dict[str, tuple[Callable[[Desk], object], str]] = {
    "no notebook": (lambda desk: None, "your notebook 02_numbers.ipynb is not in the folder beside this one"),
    "the instructor's": (lambda desk: desk.put(desk.sources["02_numbers"]), "is the instructor's"),
    "no notebook at all": (
        lambda desk: (
            (desk.folder / "02_numbers").mkdir(),
            (desk.folder / "02_numbers/02_numbers.ipynb").write_text("{"),
        ),
        "cannot be read",
    ),
    "a deleted cell": (
        lambda desk: desk.put(
            NotebookNode(
                desk.sources["02_numbers"]
                | {"cells": [c for c in students(desk.sources["02_numbers"]).cells if grade_id(c) != "product"]}
            )
        ),
        "no longer has the cell 'product'",
    ),
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_without_a_student_s_notebook_it_is_the_reference(
    name: str, desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    arrange, reason = ELSEWHERE[name]
    arrange(desk)
    assert "square" not in desk.start()
    out = capsys.readouterr().out
    assert out.startswith(REFERENCE)
    assert reason in out
    assert INSIST not in out
    assert not desk.engine_file.exists()


def test_an_exercise_that_is_timed_comes_along(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    notebook = students(desk.sources["02_numbers"])
    for cell in notebook["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == "product":
            cell["source"] = "%%time\n" + "".join(cell["source"])
    desk.put(notebook)
    desk.start()
    assert capsys.readouterr().out == f"{OWN}\n"


def test_starting_again_says_which_cells_to_run(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    desk.put(students(desk.sources["02_numbers"]))
    desk.start("start_lesson()")
    first, again, what_to_do = capsys.readouterr().out.splitlines()
    assert first == again == OWN
    assert "run every cell below" in what_to_do


def test_one_can_insist_on_either(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    desk.put(students(desk.sources["02_numbers"], ("product", "grad * b.data,", "grad,")))
    names = desk.start("start_lesson(own=True)")
    said = capsys.readouterr().out.splitlines()[1]
    assert said.startswith(f"{OWN} It does not pass these checks yet")
    assert said.endswith(": Exercise 1: product.")
    assert names["MiniTensor"](3.0).__mul__(names["MiniTensor"](2.0)).rule(1.0)[0] == 1.0
    assert desk.engine_file.exists()
    desk.start("start_lesson(own=False)")
    assert capsys.readouterr().out.splitlines()[1] == f"{REFERENCE}as you asked."
    assert not desk.engine_file.exists()


def test_names_that_only_the_rest_of_the_notebook_defines_come_along(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook = students(desk.sources["02_numbers"], ("exponential", "math.exp(a.data)", "power_of_e(a.data)"))
    helper = "import math as mathematics\nprint('loud')\ndef power_of_e(x):\n    return mathematics.exp(x)\n"
    notebook.cells[1].source += f"\n{helper}"
    desk.put(notebook)
    names = desk.start()
    assert capsys.readouterr().out == f"{OWN}\n"
    assert names["MiniTensor"](0.0).exp().data == 1.0
    assert "loud" not in desk.engine_file.read_text()


def test_a_file_that_somebody_else_wrote_is_not_taken_away(desk: Desk) -> None:
    desk.engine_file.write_text("mine = 1\n")
    desk.start()
    assert desk.engine_file.read_text() == "mine = 1\n"


@pytest.mark.parametrize("own", [True, False])
def test_tracebacks_show_the_lines_of_the_engine(own: bool, desk: Desk) -> None:
    if own:
        desk.put(students(desk.sources["02_numbers"]))
    names = desk.start()
    linecache.checkcache()
    try:
        names["product"](1.0, 2.0)
    except AttributeError:
        assert "MiniTensor(a.data * b.data, (a, b), rule)" in traceback.format_exc()
    else:
        pytest.fail("numbers have no .data")


def test_a_name_of_the_engine_can_be_redefined_for_the_engine(desk: Desk) -> None:
    names = desk.start("def product(a, b):\n    return 'mine'\n", "def square(a):\n    return product(a, a)")
    assert names["square"](1.0) == "mine"
    assert names["MiniTensor"].__module__ == "__main__"


def test_a_call_without_the_engine_asks_for_the_first_cell(desk: Desk) -> None:
    with pytest.raises(Exception, match="cell at the top of the notebook"):
        exec("from autograder.student import start_lesson\nstart_lesson()", {})


def graded(desk: Desk) -> tuple[list[tuple[str, float]], str]:
    notebook = students(desk.sources["03_more"])
    source = desk.sources["03_more"]
    files = readable(files_below(desk.here), Limits().files_bytes)
    start = start_confined if isolation_available() else start_unsafe
    verdict = judge_notebook(notebook, source=source, files=files, start=start)
    shown = "".join(output.get("text", "") for output in notebook.cells[0].outputs)
    return [(cell.grade_id, cell.points) for cell in verdict.cells], shown


HANDED_IN: dict[str, tuple[Callable[[str], str] | None, str]] = {
    "as written": (lambda text: text, "Using your own engine of lesson 02, from engine.py."),
    "not at all": (None, f"{REFERENCE}engine.py was not handed in."),
    "edited": (lambda text: text + "\nraise SystemExit", f"{REFERENCE}engine.py was changed or is damaged."),
    "cut off": (lambda text: text[:200], f"{REFERENCE}engine.py was changed or is damaged."),
    "of another lesson": (
        lambda text: engine_file.file_text(text.partition("\n")[2], "05_other"),
        f"{REFERENCE}engine.py belongs to another lesson.",
    ),
    "one that stops": (
        lambda text: engine_file.file_text("import nowhere", "02_numbers"),
        f"{REFERENCE}engine.py does not run (ModuleNotFoundError: No module named 'nowhere').",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HANDED_IN)
def test_grading_uses_the_engine_that_was_handed_in_and_else_the_reference(name: str, desk: Desk) -> None:
    rewrite, said = HANDED_IN[name]
    desk.put(students(desk.sources["02_numbers"]))
    desk.start()
    if rewrite is None:
        desk.engine_file.unlink()
    else:
        desk.engine_file.write_text(rewrite(desk.engine_file.read_text()))
    assert graded(desk) == ([("test_square", 2.0)], said + "\n")


@pytest.fixture
def held_back(desk: Desk) -> Desk:
    """The desk of a student whose class gets the reference engine later."""
    config = Config({"HoldBack": {"enabled": True}})
    desk.sources = {name: release_notebook(source, config) for name, source in desk.sources.items()}
    return desk


def sealed(call: str) -> engine_file.SealedEngine:
    found = engine_file.SEALED_ENGINE.search(call)
    assert found
    return engine_file.open_engine(found[1])


def test_an_engine_that_is_held_back_has_no_solutions_and_is_whole_again_when_graded(
    sources: dict[str, NotebookNode], held_back: Desk
) -> None:
    there, here = sealed(sources["03_more"].cells[0].source), sealed(held_back.sources["03_more"].cells[0].source)
    assert "grad * b.data" in there.source
    assert "class MiniTensor" in here.source, "given cells stay"
    assert here.is_held_back
    assert not there.is_held_back
    assert [cell.cell for cell in here.cells] == [cell.cell for cell in there.cells]
    assert [cell.source for cell in here.cells if cell.solution] == ["", ""]


def test_the_own_engine_needs_no_reference(
    sources: dict[str, NotebookNode], held_back: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    held_back.put(students(sources["02_numbers"]))
    assert held_back.start()["MiniTensor"](0.0).exp().data == 1.0
    assert capsys.readouterr().out == f"{OWN}\n"
    assert held_back.engine_file.exists()


def test_who_has_neither_is_told_what_to_do(sources: dict[str, NotebookNode], held_back: Desk) -> None:
    held_back.put(students(sources["02_numbers"], ("product", "grad * b.data,", "grad,")))
    with pytest.raises(engine_file.EngineError, match=r"Exercise 1: product.*gives out .*reference_engine\.txt"):
        held_back.start()
    assert not held_back.engine_file.exists()


REFERENCES = {
    "as given out": (lambda text: text, ""),
    "cut off": (lambda text: text[:50], "not in the folder beside this one, and reference_engine.txt is damaged"),
    "of another lesson": (
        lambda text: engine_file.seal_engine(replace(engine_file.open_engine(text), after="05_other")),
        "belongs to another lesson",
    ),
    "held back itself": (
        lambda text: engine_file.seal_engine(engine_file.held_back(engine_file.open_engine(text))),
        "has no solutions in it",
    ),
}


@pytest.mark.parametrize("name", REFERENCES)
def test_the_reference_comes_as_a_file(
    name: str, sources: dict[str, NotebookNode], held_back: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    rewrite, refused = REFERENCES[name]
    text = rewrite(engine_file.seal_engine(sealed(sources["03_more"].cells[0].source)))
    (held_back.here / engine_file.REFERENCE_FILE).write_text(text + "\n")
    if refused:
        with pytest.raises(engine_file.EngineError, match=refused):
            held_back.start()
    else:
        assert held_back.start()["MiniTensor"](0.0).exp().data == 1.0
        assert capsys.readouterr().out.startswith(REFERENCE)


@pytest.mark.slow
def test_a_wrong_engine_that_a_student_insisted_on_is_the_one_that_is_graded(desk: Desk) -> None:
    desk.put(students(desk.sources["02_numbers"], ("product", "grad * b.data,", "grad,")))
    desk.start("start_lesson(own=True)")
    assert graded(desk)[0] == [("test_square", 0.0)]
