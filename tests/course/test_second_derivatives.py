"""Every `Function` that a lesson or a page shows can be differentiated twice, or says that it cannot.

Students copy these classes. A rule that uses an intermediate value passes `gradcheck`, and is silently wrong when it is
differentiated again. So lessons and pages run here, the calls of their Functions are kept, and the derivatives of the
gradients are compared with differences. A new class is tried without being named in this file.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.autograd.function import once_differentiable
from torch.autograd.gradcheck import GradcheckError

from autograder.lessons.mistakes import planting
from tests.course.planting import LESSONS as FOLDER
from tests.course.planting import text_of

CLASS = re.compile(r"^[ >.]*class (\w+)\((torch\.autograd\.)?Function\):", re.MULTILINE)
RECORDS_ITSELF = "10"
"""The first lesson whose engine can record a backward pass. With those before it, nothing is differentiated twice."""
LONG = 8
"""Longer vectors are cut: one cell measures the memory of 250,000 entries."""

REPOSITORY = FOLDER.parents[1]
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
LESSONS = [
    path.stem
    for path in sorted(FOLDER.glob("*/[0-9][0-9]_*.py"))
    if any(of_pytorch or path.stem >= RECORDS_ITSELF for _, of_pytorch in CLASS.findall(path.read_text("utf-8")))
]

ON_PURPOSE = {
    "08_custom_functions": {
        "Custom": {"right", "error"},  # shows what PyTorch says about gradients of a wrong form
        "Exponential": {"right", "wrong"},  # keeps a value in four ways, once detached
        "SavesANumber": {"error"},  # shows that only tensors can be saved
        "Cube": {"right", "wrong", "refuses"},  # compares three rules
    },
    "10_higher_order_and_hooks": {"Decay": {"right", "wrong"}},  # compares three rules
}
"""What is shown because it is not right, as the text beside it says."""

ONLY_HERE = {"CopySlices": "x = MiniTensor([1.0, 2.0], requires_grad=True) * 1\nx[0].mul_(3.0)"}
"""What a lesson shows and does not call, and cells that do."""

Call = tuple[Any, tuple[Any, ...], dict[str, Any]]
"""A Function, and the inputs and options that it was called with."""


@contextlib.contextmanager
def kept(base: Any, calls: list[Call]) -> Iterator[None]:
    """Keep each call of a class that is derived from this one, if an input requires grad."""
    apply = vars(base).get("apply")  # the engine of the course gets it in a cell of its own

    def keep(cls: Any, *inputs: Any, **options: Any) -> Any:
        if any(getattr(x, "requires_grad", False) for x in inputs):
            calls.append((cls, inputs, options))
        return apply.__get__(None, cls)(*inputs, **options)

    if apply is not None:
        base.apply = mine = classmethod(keep)
    try:
        yield
    finally:
        if apply is not None and vars(base)["apply"] is mine:  # a cell may have replaced it
            base.apply = apply


def run(source: str, names: dict[str, Any]) -> list[Call]:
    """The calls of Functions in a cell. Some cells fail on purpose, and some checks mind that calls are kept."""
    calls: list[Call] = []
    with contextlib.ExitStack() as stack, contextlib.suppress(Exception):
        for base in {torch.autograd.Function, names.get("Function", torch.autograd.Function)}:
            stack.enter_context(kept(base, calls))
        for redirect in (contextlib.redirect_stdout, contextlib.redirect_stderr):
            stack.enter_context(redirect(io.StringIO()))
        exec(compile(source, "<shown>", "exec", dont_inherit=True), names)
    return calls


def smallest(calls: Iterable[Call]) -> list[Call]:
    """For each class, the call with the fewest entries."""
    found: dict[Any, tuple[int, Call]] = {}
    for call in calls:
        entries = sum(int(np.prod(x.shape)) for x in call[1] if hasattr(x, "shape"))
        if call[0] not in found or entries < found[call[0]][0]:
            found[call[0]] = entries, call
    return [call for _, call in found.values()]


def in_pytorch(operation: Any, inputs: tuple[Any, ...], options: dict[str, Any]) -> str:
    """What comes of differentiating twice: right, wrong, refuses or error."""
    if operation.backward.__code__ is once_differentiable(operation.backward).__code__:
        return "refuses"
    torch.manual_seed(0)  # gradgradcheck draws, too
    inputs = tuple(x[:LONG] if torch.is_tensor(x) and x.ndim == 1 else x for x in inputs)
    inputs = tuple(
        torch.rand(x.shape, dtype=torch.float64).add(0.5).requires_grad_() if getattr(x, "requires_grad", False) else x
        for x in inputs
    )
    try:
        torch.autograd.gradgradcheck(lambda *inputs: operation.apply(*inputs, **options), inputs)
    except GradcheckError:
        return "wrong"
    except (RuntimeError, TypeError):
        return "error"
    return "right"


def in_the_lesson(names: dict[str, Any], operation: Any, inputs: tuple[Any, ...], options: dict[str, Any]) -> str:
    """The same on the engine of the course: a sum of the gradients is differentiated in one direction."""
    tensor, grad, draw = names["MiniTensor"], names["grad"], np.random.default_rng(0)
    places = [i for i, x in enumerate(inputs) if isinstance(x, tensor) and x.requires_grad]
    points = [draw.uniform(0.5, 1.5, size=inputs[i].shape) for i in places]
    weights, direction = ([draw.normal(size=x.shape) for x in points] for _ in range(2))

    def gradients(step: float) -> tuple[list[Any], Any]:
        leaves = [tensor(x + step * v, requires_grad=True) for x, v in zip(points, direction, strict=True)]
        given = dict(enumerate(inputs)) | dict(zip(places, leaves, strict=True))
        output = operation.apply(*given.values(), **options)
        cotangent = np.linspace(1.0, 2.0, output.data.size).reshape(output.shape)
        found = grad(output, leaves, cotangent, create_graph=True, allow_unused=True)
        return leaves, sum((g * w).sum() for g, w in zip(found, weights, strict=True) if g is not None)

    try:
        leaves, total = gradients(0.0)
        slopes = grad(total, leaves, allow_unused=True) if total.requires_grad else [None] * len(leaves)
        above, below = (gradients(step)[1].item() for step in (1e-5, -1e-5))
    except RuntimeError:
        return "refuses"
    along = sum((g.data * v).sum() for g, v in zip(slopes, direction, strict=True) if g is not None)
    return "right" if np.isclose(along, (above - below) / 2e-5, rtol=1e-5, atol=1e-5) else "wrong"


def shown_by(lesson: str) -> set[str]:
    """The names of the classes that students see, as far as they can be differentiated twice."""
    return {
        name
        for cell in planting.cells_of(text_of(lesson))
        for name, of_pytorch in CLASS.findall(cell.source)
        if not cell.style and not cell.nbgrader.get("grade") and (of_pytorch or lesson >= RECORDS_ITSELF)
    } - {"AccumulateGrad"}  # a node that no operation makes


def names_of(calls: Iterable[Call]) -> set[str]:
    return {operation.__name__ for operation, _, _ in calls}


def calls_in(lesson: str) -> tuple[list[Call], dict[str, Any]]:
    """The calls of Functions in a lesson, up to the cell after which all that it shows have been called."""
    names: dict[str, Any] = {"__name__": lesson}
    calls: list[Call] = []
    for cell in planting.cells_of(text_of(lesson)):
        if shown_by(lesson) - set(ONLY_HERE) <= names_of(calls):
            break
        if cell.kind != "code" or cell.style or {"quiz", "hint"} & set(cell.tags):
            continue
        for part in planting.engine_cells_before(text_of(lesson)) if planting.STARTS.search(cell.source) else [cell]:
            calls += run(part.source, names)
    for name in shown_by(lesson) & set(ONLY_HERE):
        calls += run(ONLY_HERE[name], names)
    return calls, names


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("lesson", LESSONS)
def test_a_function_of_a_lesson_is_right_twice_or_refuses(lesson: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER.parent)  # for the data files
    found = defaultdict(set)
    with np.errstate(), warnings.catch_warnings(), torch.random.fork_rng():
        warnings.simplefilter("ignore")
        calls, names = calls_in(lesson)
        for operation, inputs, options in smallest(calls):
            if issubclass(operation, torch.autograd.Function):
                found[operation.__name__].add(in_pytorch(operation, inputs, options))
            elif operation.__name__ in shown_by(lesson):
                found[operation.__name__].add(in_the_lesson(names, operation, inputs, options))
    assert not shown_by(lesson) - names_of(calls), "nothing calls these where an input requires grad"
    others = {name: what for name, what in found.items() if not what <= {"right", "refuses"}}
    assert others == ON_PURPOSE.get(lesson, {})


@pytest.mark.parametrize(
    "document", [page for page in PAGES if CLASS.search(page.read_text("utf-8"))], ids=lambda it: it.stem
)
def test_a_function_of_a_page_is_right_twice_or_refuses(document: Path) -> None:
    text, names = document.read_text("utf-8"), {"__name__": document.stem}
    examples = doctest.DocTestParser().get_examples(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        calls = [call for example in examples for call in run(example.source, names)]
    assert {name for name, _ in CLASS.findall(text)} == names_of(calls)
    assert {in_pytorch(*call) for call in smallest(calls)} <= {"right", "refuses"}
