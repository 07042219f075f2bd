"""An operation is one class and its function in one file: all other places find it there.

The test writes `exp2` into a copy of the engine. What it then asks for is what a new operation needs: nothing else in
the copy was changed.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import mini_autograd as ma
from mini_autograd import operations

ROOT = Path(ma.__file__).parents[1]
FAMILY = "mini_autograd/operations/pointwise/mathematical.py"

EXP2 = '''
class Exp2(OfFloats):
    """2^x. d(2^x) = log(2) 2^x dx."""

    @staticmethod
    def forward(ctx, x):
        output = np.exp2(x)
        ctx.save_for_backward(output)
        return output

    @staticmethod
    def backward(ctx, grad):
        (output,) = ctx.saved_tensors
        return grad * (output * math.log(2.0))


def exp2(input: Value) -> Value:
    """2 to the power of each element."""
    return Exp2.apply(input)
'''

USED = """
import pydoc
import mini_autograd as ma
from autograder.bugs.bank import bug
from autograder.runs.reference_patch import OPERATIONS, disturbed, symbol
from mini_autograd import operations
from mini_autograd.autograd import gradcheck
from mini_autograd.drawing import read_graph
from mini_autograd.widgets.expressions import computed, parsed
from mini_autograd.widgets.rerun import operation_of
import numpy as np

x = ma.tensor([1.0, 3.0], dtype=ma.float64, requires_grad=True)
y = ma.exp2(x)
assert y.tolist() == x.exp2().tolist() == (x * 1).exp2_().tolist() == [2.0, 8.0]
assert gradcheck(ma.exp2, (x,)) and gradcheck(lambda x: (x * 1).exp2_(), (x,))
assert "exp2(input: 'Value')" in pydoc.plain(pydoc.render_doc(ma.exp2)) and "exp2" in dir(ma) and "exp2_" in dir(x)
assert y.grad_fn.name() == "Exp2Backward0"
assert type(y.grad_fn) in operations.ALL and type(y.grad_fn) is OPERATIONS["Exp2"]
assert symbol("Exp2") == "exp2"
assert "Exp2" in bug("upstream_ignored").rules
with disturbed(1e-6, np.random.default_rng(0)):
    assert y.tolist() != ma.exp2(x).tolist()
graph = read_graph(ma.exp2(x * 2).sum(), {"x": x})
found = next(node for node in graph.nodes if node.operation == "exp2")
assert found.value.tolist() == [4.0, 64.0]
assert operation_of(found, [x]).tolist() == computed(parsed("exp2(x)"), {"x": x}, ma.no_grad).tolist() == [2.0, 8.0]
"""


def test_a_new_operation_is_found_in_all_places(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "mini_autograd", tmp_path / "mini_autograd", ignore=shutil.ignore_patterns("__pycache__"))
    family = tmp_path / FAMILY
    listed = family.read_text().replace('__all__ = ["cos", ', '__all__ = ["cos", "exp2", ')
    family.write_text(listed + EXP2)
    path = os.pathsep.join(map(str, (tmp_path, ROOT)))
    run = [sys.executable, "-c", USED]
    result = subprocess.run(
        run, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr


def test_the_text_of_the_package_names_the_files_without_operations() -> None:
    files = {path.stem for path in (ROOT / "mini_autograd/operations").glob("*/[!_]*.py")}
    without = files - {operation.__module__.rpartition(".")[2] for operation in operations.ALL}
    text = str(operations.__doc__).rpartition("\n\n")[2]
    assert all(name in text for name in without), without
    assert text.startswith(f"{['No', 'One', 'Two', 'Three', 'Four', 'Five'][len(without)]} files")
