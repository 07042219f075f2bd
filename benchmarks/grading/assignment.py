"""The assignment that every way of grading gets: five functions in NumPy, sixteen test cells that compare with PyTorch.

Half of the test cells are hidden. Two of five submissions are right; the others have one function wrong, so that the
marks of the different graders can be compared.
"""

from __future__ import annotations

import json
import textwrap
import zipfile
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

NAME, NOTEBOOK = "layers", "layers"
IMPORTS = "import numpy as np"
BODIES = {
    "relu(x)": "return np.maximum(x, 0.0)",
    "softmax(x)": "e = np.exp(x - x.max(axis=-1, keepdims=True))\nreturn e / e.sum(axis=-1, keepdims=True)",
    "normalize(x)": "return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)",
    "cross_entropy(x, y)": "shifted = x - x.max(axis=1, keepdims=True)\n"
    "return float(np.mean(np.log(np.exp(shifted).sum(axis=1)) - shifted[np.arange(len(y)), y]))",
    "linear_backward(x, w, grad)": "return grad @ w.T, x.T @ grad, grad.sum(axis=0)",
}
WRONG = {
    "relu(x)": "return np.abs(x)",
    "softmax(x)": "e = np.exp(x)\nreturn e / e.sum()",
    "cross_entropy(x, y)": "return 0.0",
}
ORDER = (None, "relu(x)", "softmax(x)", None, "cross_entropy(x, y)")
PREPARE = "import numpy as np, torch; rng = np.random.default_rng({seed}); t = torch.tensor"
TESTS = {
    "relu(x)": (
        "x = rng.normal(size=(4, 3)); assert np.allclose(relu(x), torch.relu(t(x)).numpy())",
        "x = rng.normal(size=7); x[0] = 0.0; assert np.allclose(relu(x), torch.relu(t(x)).numpy())",
    ),
    "softmax(x)": (
        "x = rng.normal(size=5); assert np.allclose(softmax(x), torch.softmax(t(x), -1).numpy())",
        "x = rng.normal(size=(3, 4)); assert np.allclose(softmax(x), torch.softmax(t(x), -1).numpy())",
        "x = 1000 * rng.normal(size=(2, 6)); assert np.allclose(softmax(x), torch.softmax(t(x), -1).numpy())",
        "x = rng.normal(size=(2, 3, 4)); assert np.allclose(softmax(x).sum(-1), 1.0)",
    ),
    "normalize(x)": (
        "x = rng.normal(size=(3, 8)); assert np.allclose(normalize(x), torch.nn.functional.layer_norm(t(x), (8,)))",
        "x = 5 + rng.normal(size=(2, 9)); assert np.allclose(normalize(x), torch.nn.functional.layer_norm(t(x), (9,)))",
    ),
    "cross_entropy(x, y)": (
        "x = rng.normal(size=(4, 3)); y = rng.integers(0, 3, 4); "
        "assert np.allclose(cross_entropy(x, y), float(torch.nn.functional.cross_entropy(t(x), t(y))))",
        "x = 50 * rng.normal(size=(6, 5)); y = rng.integers(0, 5, 6); "
        "assert np.allclose(cross_entropy(x, y), float(torch.nn.functional.cross_entropy(t(x), t(y))))",
        "x = np.zeros((2, 4)); assert np.allclose(cross_entropy(x, np.array([0, 3])), np.log(4))",
        "x = rng.normal(size=(1, 3)); y = np.array([2]); "
        "assert np.allclose(cross_entropy(x, y), float(torch.nn.functional.cross_entropy(t(x), t(y))))",
    ),
    "linear_backward(x, w, grad)": tuple(
        f"x, w, g = rng.normal(size=({n}, 3)), rng.normal(size=(3, 2)), rng.normal(size=({n}, 2)); "
        "tx, tw = t(x, requires_grad=True), t(w, requires_grad=True); (tx @ tw).backward(t(g)); "
        f"assert np.allclose(linear_backward(x, w, g)[{part}], {expected})"
        for n, part, expected in ((4, 0, "tx.grad"), (5, 1, "tw.grad"), (6, 2, "g.sum(0)"), (1, 0, "tx.grad"))
    ),
}
POINTS = 2.5


def tests() -> list[tuple[str, str, bool]]:
    """The name and the code of each test cell in order, and whether it is hidden."""
    found = []
    for head, codes in TESTS.items():
        for number, code in enumerate(codes):
            name = f"test_{head.partition('(')[0]}_{number}"
            found.append((name, f"{PREPARE.format(seed=number)}\n{code.replace('; ', chr(10))}", number % 2 == 1))
    return found


def body_of(head: str, student: int) -> str:
    """The body of a function in a student's notebook."""
    return WRONG[head] if ORDER[student % len(ORDER)] == head else BODIES[head]


def right_points(student: int) -> float:
    """The points that a student deserves: full marks, minus the test cells that a wrong function fails."""
    wrong = ORDER[student % len(ORDER)]
    lost = {None: 0, "relu(x)": 2, "softmax(x)": 3, "cross_entropy(x, y)": 4}[wrong]
    return POINTS * (len(tests()) - lost)


def function(head: str, body: str, solution: bool = False) -> str:
    body = f"### BEGIN SOLUTION\n{body}\n### END SOLUTION" if solution else body
    return f"def {head}:\n{textwrap.indent(body, '    ')}"


def notebook(student: int | None = None) -> NotebookNode:
    """The instructor's notebook, or a student's."""
    cells = [new_markdown_cell("# Layers"), _cell("imports", IMPORTS, locked=True)]
    by_function = {name: (code, hidden) for name, code, hidden in tests()}
    for head in BODIES:
        body = BODIES[head] if student is None else body_of(head, student)
        short = head.partition("(")[0]
        cells.append(_cell(short, function(head, body, solution=student is None)))
        for name, (code, hidden) in by_function.items():
            if name.rpartition("_")[0] == f"test_{short}":
                if hidden:
                    code = f"### BEGIN HIDDEN TESTS\n{code}\n### END HIDDEN TESTS" if student is None else ""
                cells.append(_cell(name, code, points=POINTS))
    return new_notebook(cells=cells, metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}})


def _cell(name: str, source: str, points: float | None = None, locked: bool = False) -> NotebookNode:
    test = points is not None
    about = {"schema_version": 3, "grade_id": name, "grade": test, "solution": not (test or locked), "task": False}
    about |= {"locked": test or locked, **({"points": points} if test else {})}
    return new_code_cell(source, metadata={"nbgrader": about}, id=name.replace("_", "-"))


def make_course(root: Path, students: int, configuration: str) -> None:
    """An nbgrader course with this assignment, handed in by this many students."""
    source = root / "source" / NAME
    source.mkdir(parents=True)
    (root / "nbgrader_config.py").write_text(configuration)
    nbformat.write(notebook(), source / f"{NOTEBOOK}.ipynb")
    for number in range(students):
        folder = root / "submitted" / f"student{number:04d}" / NAME
        folder.mkdir(parents=True)
        nbformat.write(notebook(number), folder / f"{NOTEBOOK}.ipynb")


def make_otter(root: Path, students: int) -> tuple[Path, list[Path]]:
    """The assignment as otter-grader wants it: an archive with the tests, and a notebook per student."""
    root.mkdir(parents=True)
    archive = root / "autograder.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("otter_config.json", json.dumps({"lang": "python"}))
        for name, code, hidden in tests():
            shown = "\n".join(f">>> {line}" for line in code.splitlines())
            case = {"code": shown, "hidden": hidden, "locked": False}
            suite = {"cases": [case], "scored": True, "setup": "", "teardown": "", "type": "doctest"}
            test = {"name": name, "points": POINTS, "suites": [suite]}
            file.writestr(f"tests/{name}.py", f"OK_FORMAT = True\n\ntest = {test!r}\n")
    notebooks = []
    for number in range(students):
        cells = [new_code_cell(IMPORTS)] + [new_code_cell(function(head, body_of(head, number))) for head in BODIES]
        metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
        path = root / f"student{number:04d}.ipynb"
        nbformat.write(new_notebook(cells=cells, metadata=metadata), path)
        notebooks.append(path)
    return archive, notebooks
