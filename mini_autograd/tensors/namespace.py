"""The functions that `torch` has too, those of each family's `__all__`. The package takes them all from here.

Functions that only `torch.nn.functional` has are in nn/functional.py.
"""

# ruff: noqa: F403

from mini_autograd.numerics import numpy_names as _numpy_names
from mini_autograd.operations.pointwise.comparison import *
from mini_autograd.operations.pointwise.elementwise import *
from mini_autograd.operations.pointwise.mathematical import *
from mini_autograd.operations.pointwise.rounding import *
from mini_autograd.operations.products.linear_algebra import *
from mini_autograd.operations.reductions.cumulative import *
from mini_autograd.operations.reductions.diagonals import *
from mini_autograd.operations.reductions.extremes import *
from mini_autograd.operations.reductions.norms import *
from mini_autograd.operations.reductions.reduction import *
from mini_autograd.operations.reductions.softmax import *
from mini_autograd.operations.reductions.sorting import *
from mini_autograd.operations.shapes.gathering import *
from mini_autograd.operations.shapes.joining import *
from mini_autograd.operations.shapes.shape import *

_numpy_names.accept(globals())
