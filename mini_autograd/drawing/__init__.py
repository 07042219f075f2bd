"""Any computation graph as plain data and as a picture: of a student's MiniTensor, our own tensor, or PyTorch's.

The readers duck-type, so PyTorch is never imported here.
"""

from mini_autograd.drawing.graph import DRAWING_LIMIT, Edge, Graph, GraphTooLargeError, Node
from mini_autograd.drawing.reading import is_tensor, read_graph
from mini_autograd.drawing.svg import draw, render, summary
from mini_autograd.drawing.unrecorded import watching

__all__ = [
    "DRAWING_LIMIT",
    "Edge",
    "Graph",
    "GraphTooLargeError",
    "Node",
    "draw",
    "is_tensor",
    "read_graph",
    "render",
    "summary",
    "watching",
]
