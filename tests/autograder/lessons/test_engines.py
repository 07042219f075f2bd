"""The engine after a lesson, made from the lesson texts: what belongs to it, where it begins, what is refused."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from autograder.lessons.builder.lesson_engines import engine_after, engine_before
from autograder.lessons.builder.lesson_files import LessonTextError
from autograder.lessons.builder.notebook import assemble
from autograder.lessons.release import release_notebook
from autograder.lessons.student.delivery import Workspace
from autograder.sandbox.inside.engine_file import EngineError, open_engine, seal_engine

HERE = Path(__file__).parent


@pytest.fixture
def lessons(tmp_path: Path) -> Path:
    """A folder of lessons: 02_numbers makes an engine, 03_more continues it."""
    folder = tmp_path / "course" / "lessons"
    for name in ("02_numbers", "03_more"):
        (folder / name).mkdir(parents=True)
    shutil.copy(HERE / "engine_lesson.txt", folder / "02_numbers" / "02_numbers.py")
    shutil.copy(HERE / "next_lesson.txt", folder / "03_more" / "03_more.py")
    return folder


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def names_of(source: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(source, names)
    return names


def test_an_engine_has_the_engine_cells_with_solutions_and_runs_by_itself(lessons: Path) -> None:
    source = engine_before(lessons / "03_more" / "03_more.py").source
    assert "autograder" not in source
    assert "SOLUTION" not in source
    names = names_of(source)
    assert {"MiniTensor", "product", "exponential", "math"} <= set(names)
    assert not {"answer", "twice", "LIMIT", "credit"} & set(names)
    a = names["MiniTensor"](3.0)
    (a * a).backward()
    assert a.grad == 6.0


def test_checks_are_those_of_the_engine_exercises(lessons: Path) -> None:
    assert engine_before(lessons / "03_more" / "03_more.py").checks == ("test_product", "test_exponential")


def test_a_lesson_that_calls_start_lesson_adds_to_the_engine(lessons: Path) -> None:
    engine = engine_after(lessons / "03_more" / "03_more.py")
    assert engine is not None
    assert engine.after == "03_more"
    assert {cell.lesson for cell in engine.cells} == {"02_numbers", "03_more"}
    assert names_of(engine.source)["square"]


def test_a_lesson_that_does_not_begins_anew(lessons: Path) -> None:
    change(lessons / "03_more" / "03_more.py", "start_lesson()", "class MiniTensor:\n    pass")
    change(lessons / "03_more" / "03_more.py", "product(a, a)", "a")
    change(lessons / "03_more" / "03_more.py", "# %%\n", '# %% tags=["engine"]\n')
    engine = engine_after(lessons / "03_more" / "03_more.py")
    assert engine is not None
    assert {cell.lesson for cell in engine.cells} == {"03_more"}


def test_a_lesson_without_engine_cells_changes_nothing(lessons: Path) -> None:
    text = (lessons / "03_more" / "03_more.py").read_text().replace('tags=["engine"] ', "")
    (lessons / "03_more" / "03_more.py").write_text(text)
    (lessons / "04_last").mkdir()
    shutil.copy(HERE / "next_lesson.txt", lessons / "04_last" / "04_last.py")
    assert engine_before(lessons / "04_last" / "04_last.py").after == "02_numbers"


def test_the_builder_seals_the_engine_into_the_call(lessons: Path) -> None:
    notebook = assemble(lessons / "03_more" / "03_more.py")
    call = notebook.cells[0].source.splitlines()[-1]
    sealed = call.removeprefix('start_lesson("').removesuffix('")')
    assert open_engine(sealed) == engine_before(lessons / "03_more" / "03_more.py")
    assert "grad * b.data" not in release_notebook(notebook).cells[0].source
    assert all(
        "engine" not in cell.metadata.get("tags", [])
        for cell in assemble(lessons / "02_numbers" / "02_numbers.py").cells
    )


def test_cell_ids_do_not_depend_on_the_engine(lessons: Path) -> None:
    before = assemble(lessons / "03_more" / "03_more.py")
    change(lessons / "02_numbers" / "02_numbers.py", "output = math.exp(a.data)", "output = math.e ** a.data")
    after = assemble(lessons / "03_more" / "03_more.py")
    assert before.cells[0].source != after.cells[0].source
    assert [cell.id for cell in before.cells] == [cell.id for cell in after.cells]


def test_words_for_the_builder_do_not_reach_the_notebook(lessons: Path) -> None:
    assert not any("items" in cell.metadata for cell in assemble(lessons / "02_numbers" / "02_numbers.py").cells)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("output = math.exp(a.data)", "output = twice(a.data)", "02_numbers.py:.* cell 'exponential'.*'twice'"),
        ("MiniTensor.exp = exponential", "MiniTensor.exp = twice(exponential)", "cell 'exponential'.*NameError"),
        ("class MiniTensor:", "class MiniTensor(Base):", "02_numbers.py:.*by itself: NameError.*'Base'"),
    ],
)
def test_an_engine_that_needs_the_rest_of_the_notebook_is_refused(
    lessons: Path, old: str, new: str, message: str
) -> None:
    change(lessons / "02_numbers" / "02_numbers.py", old, new)
    for name in ("02_numbers", "03_more"):
        with pytest.raises(LessonTextError, match=message):
            assemble(lessons / name / f"{name}.py")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("start_lesson()\n", "engine = start_lesson()\n", "on a line of its own"),
        ("start_lesson()\n", "start_lesson()\nstart_lesson()\n", "once"),
        ("start_lesson()\n", "start_lesson(own=True)\n", "without arguments"),
        ("check_gradients, start_lesson\n", "check_gradients\n", "import start_lesson"),
        ("# %%\nfrom", '# %% tags=["demo"]\nfrom', "ordinary cell"),
        ("# %% [markdown]", '# %% [markdown] tags=["engine"]', "engine cell must be a code cell"),
        ("# %% [markdown]", '# %% [markdown] items="chain rule"', "one string of checklist numbers"),
    ],
)
def test_what_the_builder_cannot_use_is_refused(lessons: Path, old: str, new: str, message: str) -> None:
    change(lessons / "03_more" / "03_more.py", old, new)
    with pytest.raises(LessonTextError, match=message):
        assemble(lessons / "03_more" / "03_more.py")


def test_without_a_lesson_before_there_is_nothing_to_start_from(lessons: Path) -> None:
    (lessons / "02_numbers" / "02_numbers.py").unlink()
    with pytest.raises(LessonTextError, match="no lesson before"):
        assemble(lessons / "03_more" / "03_more.py")


def delivered(lessons: Path, workspace: Workspace) -> list[str]:
    return [
        workspace.deliver(lessons / name / f"{name}.py", lessons.parent)[0].what for name in ("02_numbers", "03_more")
    ]


def test_a_changed_engine_of_a_lesson_before_is_delivered_with_the_next_one(lessons: Path, tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "workspace")
    assert delivered(lessons, workspace) == ["new", "new"]
    change(lessons / "02_numbers" / "02_numbers.py", "# # Numbers with gradients", "# # Numbers with slopes")
    assert delivered(lessons, workspace) == ["updated", "unchanged"]
    change(lessons / "02_numbers" / "02_numbers.py", "output = math.exp(a.data)", "output = math.e ** a.data")
    assert delivered(lessons, workspace) == ["unchanged", "updated"]
    change(lessons / "02_numbers" / "02_numbers.py", "output = math.e", "output = nothing.e")
    with pytest.raises(LessonTextError, match="no engine cell defines 'nothing'"):
        delivered(lessons, workspace)


@pytest.mark.parametrize("damage", [lambda s: s[:-9], lambda s: s[1:], lambda s: s[:40] + "A" + s[41:], lambda s: None])
def test_a_damaged_seal_says_so(lessons: Path, damage: Any) -> None:
    sealed = seal_engine(engine_before(lessons / "03_more" / "03_more.py"))
    with pytest.raises(EngineError, match="fetch the lesson again"):
        open_engine(damage(sealed))


@pytest.mark.parametrize(
    ("cell", "name", "owner"),
    [
        ("def product(a, b):\n    return a", "product", "product of 02_numbers"),
        ("for MiniTensor in (1, 2):\n    pass", "MiniTensor", "of 02_numbers"),
        ("with open('data') as exponential:\n    pass", "exponential", "of 02_numbers"),
        ("value, square = 1, 2", "square", "square of 03_more"),
        ("from operator import mul as product", "product", "product of 02_numbers"),
        ("class math:\n    pass", "math", "of 02_numbers"),
    ],
)
def test_no_other_cell_may_take_a_name_of_the_engine(lessons: Path, cell: str, name: str, owner: str) -> None:
    text = (lessons / "03_more" / "03_more.py").read_text()
    (lessons / "03_more" / "03_more.py").write_text(f'{text}\n# %% tags=["demo"]\n{cell}\n')
    with pytest.raises(LessonTextError, match=rf"03_more.py:\d+: .*'{name}' belongs to the engine \(cell .*{owner}\)"):
        assemble(lessons / "03_more" / "03_more.py")


@pytest.mark.parametrize("name", ["square", "product"])  # of this lesson, and of the engine before
def test_no_function_of_a_file_of_cases_may_hide_a_name_of_the_notebook(lessons: Path, name: str) -> None:
    text = lessons / "03_more" / "03_more.py"
    cases = text.with_name("checks_03.py")
    cases.write_text(f"def another(a):\n    return a\n\n\ndef {name}(a):\n    return another(a)\n")
    with pytest.raises(LessonTextError, match=rf"checks_03.py:5: '{name}' hides what the notebook calls so"):
        assemble(text)
    cases.write_text(cases.read_text().replace(name, "yet_another"))
    assemble(text)


@pytest.mark.parametrize(
    "cell",
    [
        "import math",
        "def show(product, square=3):\n    exponential = product",
        "total = [product for product in range(3)]",
        "MiniTensor.product = lambda self, other: 0",
        "twice = LIMIT = answer = 4",
    ],
)
def test_parameters_local_names_and_names_outside_the_engine_are_free(lessons: Path, cell: str) -> None:
    text = (lessons / "03_more" / "03_more.py").read_text()
    (lessons / "03_more" / "03_more.py").write_text(f'{text}\n# %% tags=["demo"]\n{cell}\n')
    assemble(lessons / "03_more" / "03_more.py")
    alone = text.replace('tags=["engine"] ', "").replace("\nstart_lesson()", "").replace(", start_lesson", "")
    (lessons / "03_more" / "03_more.py").write_text(f"{alone}\n# %%\ndef product(a):\n    return a\n")
    assemble(lessons / "03_more" / "03_more.py")
