"""The course builds one engine: after every lesson it agrees with PyTorch, no matter who wrote it.

The reference engine and engines that students might have written (each style of the lessons' alternative solutions) go
through the course like a student: notebook by notebook, with `start_lesson`. At the end they train two networks like
PyTorch.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from nbformat import NotebookNode

from autograder.lessons.audit import variants
from autograder.lessons.builder.lesson_engines import calls_start, engine_after
from autograder.lessons.builder.lesson_files import lesson_texts, place_files
from autograder.lessons.builder.notebook import assemble, assignments, notebook_text, styles
from autograder.lessons.builder.text import read_lesson
from autograder.lessons.student import starting
from autograder.notebooks.cells import grade_id
from autograder.sandbox.inside.engine_file import FILE, SealedEngine, scratch
from tests.course import planting

pytestmark = pytest.mark.slow

COURSE = Path(__file__).parents[2] / "course"
LESSONS = [text.name[:2] for text in lesson_texts(COURSE) if text.name >= "02"]
LAST = LESSONS[-1]
REFERENCE = "solutions"
STEPS = 60

SCALARS: dict[str, Callable[..., Any]] = {
    "(a + b) * a": lambda a, b: (a + b) * a,
    "a / b - b / 2": lambda a, b: a / b - b / 2,
    "2 - a ** 3 + 1 / b": lambda a, b: 2 - a**3 + 1 / b,
    "tanh, exp and relu": lambda a, b: (a * b).tanh() + (-a).exp() * (b - a).relu(),
    "a value with many uses": lambda a, b: (a * a + a) * (a * a) + b * a,
}
ARRAYS: dict[str, Callable[..., Any]] = {
    **SCALARS,
    "broadcasting in both directions": lambda a, b: a[:, 0].reshape(3, 1) * b[0] + 1 / (a * a + 1),
    "logarithm of a sum": lambda a, b: (a.exp().sum(1) + 1).log(),
    "means and sums": lambda a, b: a.mean(0) * b.sum(1, True) - a.mean() * b.sum(),
    "matrix products": lambda a, b: (a @ b.T) @ (a[0] * b[1]).reshape(4, 1)[:3],
    "transposed twice": lambda a, b: a.transpose(0, 1).T.reshape(2, 6) * b.reshape(2, 6),
    "an index twice": lambda a, b: a[[0, 2, 2]] * b[1],
    "softmax by hand": lambda a, b: a.exp() / a.exp().sum(1, True) * b,
    "log_softmax": lambda a, b: (a * b).log_softmax(1),
}


def text_of(lesson: str) -> Path:
    (path,) = lesson_texts(COURSE, [lesson])
    return path


def engine_of(lesson: str) -> SealedEngine:
    engine = engine_after(text_of(lesson))
    assert engine is not None
    return engine


def names_of(source: str) -> dict[str, Any]:
    names = scratch()
    exec(compile(source, "<engine>", "exec", dont_inherit=True), names)
    return names


class Engine:
    """One small interface to the engines of all lessons: make a leaf, read its gradient, take a step."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names

    def leaf(self, value: Any) -> Any:
        make = self.names["MiniTensor"]
        return make(value, requires_grad=True) if "Function" in self.names else make(value)

    @staticmethod
    def gradient(leaf: Any) -> Any:
        """The gradient as an array or a number; 0 if none has arrived."""
        grad = 0.0 if leaf.grad is None else leaf.grad
        return grad if isinstance(grad, float | np.ndarray) else grad.data

    def step(self, parameter: Any, rate: float) -> None:
        parameter.data = parameter.data - rate * self.gradient(parameter)


def differences(engine: Engine, expression: Callable[..., Any], inputs: list[Any], seed: int) -> float:
    """The largest error of value and gradients against PyTorch, after two calls of backward with a random cotangent."""
    ours, theirs = [engine.leaf(value) for value in inputs], [leaf_of_torch(value) for value in inputs]
    found = 0.0
    for _ in range(2):
        out, expected = expression(*ours), expression(*theirs)
        cotangent = np.random.default_rng(seed).normal(size=tuple(expected.shape))
        out.backward(cotangent if cotangent.ndim else float(cotangent))
        expected.backward(torch.from_numpy(np.asarray(cotangent)))
        found = max(found, float(np.abs(out.data - expected.detach().numpy()).max()))
    for leaf, tensor in zip(ours, theirs, strict=True):
        expected = torch.zeros_like(tensor) if tensor.grad is None else tensor.grad
        found = max(found, float(np.abs(engine.gradient(leaf) - expected.numpy()).max()))
    return found


@pytest.mark.parametrize("lesson", LESSONS)
def test_after_each_lesson_the_engine_agrees_with_pytorch(lesson: str) -> None:
    engine = Engine(names_of(engine_of(lesson).source))
    random = np.random.default_rng(int(lesson))
    scalar = lesson in ("02", "03")
    inputs = [0.7, 1.9] if scalar else [random.normal(size=(3, 4)), random.uniform(0.5, 2.0, size=(3, 4))]
    wrong = {
        name: error
        for seed, (name, expression) in enumerate((SCALARS if scalar else ARRAYS).items())
        if not (error := differences(engine, expression, inputs, seed)) < 1e-12
    }
    assert wrong == {}


@cache
def instructors(text: Path) -> NotebookNode:
    return assemble(text)


@cache
def solved_by_the_instructor(text: Path) -> NotebookNode:
    """The notebook that students get, with the solutions. Every student's notebook begins as a copy of it."""
    return variants.solved_release(instructors(text))


BEGAN: dict[tuple[str, str, str], starting.Chosen] = {}
"""How students began a lesson: by its name, the notebook of the lesson before, and the engine file beside that. Most
styles solve only some lessons in their own way, and until then such a student has what the first one had."""


class Student:
    """A student who solves every lesson in one style, or like the instructor if a lesson does not have that style."""

    def __init__(self, folder: Path, style: str) -> None:
        self.folder, self.style = folder, style

    def hand_in(self, lesson: str) -> None:
        """Solve a lesson's notebook and save it."""
        text = text_of(lesson)
        notebook = copy.deepcopy(solved_by_the_instructor(text))
        theirs = styles(text).get(self.style, {})
        for cell in notebook.cells:
            cell.source = theirs.get(grade_id(cell), cell.source)
            cell.source = "".join(line for line in cell.source.splitlines(True) if "SOLUTION" not in line)
        path = self.folder / text.stem / f"{text.stem}.ipynb"
        path.parent.mkdir(exist_ok=True)
        path.write_text(notebook_text(notebook), encoding="utf-8")
        place_files(text, COURSE, path.parent)

    def start(self, engine: SealedEngine, monkeypatch: pytest.MonkeyPatch) -> starting.Chosen:
        """Open the next lesson."""
        here, before = self.folder / engine.start_of, self.folder / engine.after
        here.mkdir(exist_ok=True)
        monkeypatch.chdir(here)
        notebook, own = before / f"{engine.after}.ipynb", before / FILE
        had = engine.start_of, notebook.read_text("utf-8"), own.read_text("utf-8") if own.exists() else ""
        if had in BEGAN:
            (here / FILE).write_text(BEGAN[had].source, encoding="utf-8")
        else:
            BEGAN[had] = starting.choose(engine, None)
        return BEGAN[had]


TEXTS = lesson_texts(COURSE, LESSONS)


def all_styles() -> list[str]:
    return [REFERENCE, *sorted({style for path in TEXTS for style in planting.styles(path.stem)})]


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text.stem)
def test_no_style_is_left_out(text: Path) -> None:
    assert planting.styles(text.stem) == sorted(styles(text))


@pytest.mark.parametrize("style", all_styles())
def test_a_student_s_own_engine_goes_from_lesson_to_lesson(
    style: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every lesson takes the engine of the one before, and in the end it trains two networks."""
    student = Student(tmp_path, style)
    said = {}
    for lesson, following in zip(LESSONS, [*LESSONS[1:], None], strict=True):
        student.hand_in(lesson)
        engine = engine_of(lesson)
        if following is not None and not any(map(calls_start, read_lesson(text_of(following)))):
            continue  # the next lesson starts without an engine
        engine = replace(engine, start_of=text_of(following).stem if following else "99_after_the_course")
        chosen = student.start(engine, monkeypatch)
        said[lesson] = chosen.message
        assert chosen.message == f"Using your own engine of lesson {engine.number}.", said
    trains_like_pytorch(Engine(names_of(chosen.source)))


def two_moons(random: np.random.Generator, count: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """The points of two interlocking half circles, and the half circle of each point (as -1 or 1)."""
    angle, side = random.uniform(0, np.pi, count), np.repeat([1.0, -1.0], count // 2)
    x = np.stack([np.cos(angle) * side + 0.5 * (side < 0), np.sin(angle) * side + 0.25 * (side < 0)], axis=1)
    return x + 0.1 * random.normal(size=x.shape), side.reshape(-1, 1)


def gradient_descent(parameters: list[Any], loss_of: Callable[..., Any], update: Callable[..., None]) -> list[float]:
    """The losses of a training."""
    losses = []
    for _ in range(STEPS):
        loss = loss_of(*parameters)
        losses.append(loss.item())
        loss.backward()
        for parameter in parameters:
            update(parameter)
            parameter.grad = None
    return losses


def trains_like_pytorch(engine: Engine) -> None:
    """A network with a hidden layer on two moons, then a softmax classifier on digits: the same curves as PyTorch's."""
    random = np.random.default_rng(8)
    points, side = two_moons(random)
    digits = np.load(COURSE / "data" / "digits.npz")
    images, labels = digits["images"][:300].reshape(300, -1) / 16.0, digits["labels"][:300].astype(np.int64)
    hidden = [random.normal(size=shape) for shape in ((2, 12), (12,), (12, 1), (1,))]
    single = [0.01 * random.normal(size=(64, 10)), np.zeros(10)]

    def moons(constant: Callable[..., Any], cross_entropy: Callable[..., Any]) -> Callable[..., Any]:
        x, y = constant(points), constant(side)
        return lambda w1, b1, w2, b2: (((x @ w1 + b1).tanh() @ w2 + b2 - y) ** 2).mean()

    def classifier(constant: Callable[..., Any], cross_entropy: Callable[..., Any]) -> Callable[..., Any]:
        x = constant(images)
        return lambda w, b: cross_entropy(x @ w + b, labels)

    for task, start, rate in ((moons, hidden, 0.1), (classifier, single, 0.5)):
        ours = gradient_descent(
            [engine.leaf(value) for value in start],
            task(engine.names["MiniTensor"], engine.names["cross_entropy"]),
            partial(engine.step, rate=rate),
        )
        theirs = gradient_descent(
            [leaf_of_torch(value) for value in start],
            task(torch.tensor, torch_cross_entropy),
            partial(torch_step, rate=rate),
        )
        assert ours[-1] < 0.5 * ours[0], "this training gets nowhere"
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def leaf_of_torch(value: Any) -> torch.Tensor:
    return torch.tensor(value, dtype=torch.float64, requires_grad=True)


def torch_cross_entropy(logits: torch.Tensor, labels: np.ndarray) -> torch.Tensor:
    return torch.nn.functional.cross_entropy(logits, torch.from_numpy(labels))


def torch_step(parameter: torch.Tensor, rate: float) -> None:
    assert parameter.grad is not None
    with torch.no_grad():
        parameter -= rate * parameter.grad


def optional_of(engine: SealedEngine) -> list[str]:
    """The optional exercises of the lesson after which an engine is sealed."""
    return [part.cell for part in engine.cells if part.lesson == engine.after and part.optional]


def test_the_own_engine_goes_on_without_the_optional_exercises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The notebook of *Further* is not there. It may rewrite something of the core; the core must not need it."""
    lessons = [lesson for lesson in LESSONS if optional_of(engine_of(lesson))]
    assert len(lessons) > 3
    for lesson in lessons:
        (tmp_path / lesson).mkdir()
        goes_on_without_them(lesson, tmp_path / lesson, monkeypatch)


def goes_on_without_them(lesson: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, engine = text_of(lesson), engine_of(lesson)
    notebook = variants.solved_release(assignments(text)[text.stem])
    for cell in notebook.cells:
        assert grade_id(cell) not in optional_of(engine)
        cell.source = "".join(line for line in cell.source.splitlines(True) if "SOLUTION" not in line)
    path, here = folder / text.stem / f"{text.stem}.ipynb", folder / "next"
    path.parent.mkdir()
    here.mkdir()
    path.write_text(notebook_text(notebook), encoding="utf-8")
    place_files(text, COURSE, path.parent)
    monkeypatch.chdir(here)
    chosen = starting.choose(replace(engine, start_of=here.name), None)
    assert chosen.message == f"Using your own engine of lesson {engine.number}."
