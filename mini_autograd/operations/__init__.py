"""All operations by family: `Multiply` is in elementwise, `Sum` in reduction, `MatMul` in linear_algebra, and so on."""

from mini_autograd.operations.elementwise import (
    Add,
    Cast,
    Clone,
    Divide,
    Exp,
    Log,
    Multiply,
    Negate,
    Power,
    PowerOfTensors,
    Relu,
    Subtract,
    Tanh,
    Where,
)
from mini_autograd.operations.indexing import Index, Put
from mini_autograd.operations.linear_algebra import MatMul
from mini_autograd.operations.reduction import Mean, Sum
from mini_autograd.operations.shape import Expand, Permute, Reshape, Transpose

ALL = (
    *(Add, Subtract, Multiply, Divide, Negate, Power, PowerOfTensors, Exp, Log, Tanh, Relu, Where, Clone, Cast),
    *(Sum, Mean, MatMul, Reshape, Expand, Transpose, Permute, Index, Put),
)
"""Every operation, for those who want to walk through them."""
