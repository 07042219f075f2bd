# ---
# jupyter:
#   jupytext:
#     cell_metadata_filter: nbgrader,tags,exercise,items,-all
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Lifetime

# %%
import gc
import weakref

import numpy as np

from autograder.student import check_function, check_gradients, hints, quiz, start_lesson

start_lesson()

# %% tags=["engine"]
SECOND_BACKWARD = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
    "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
    "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
    "after calling backward."
)

# %% [markdown]
# ### Exercise 1: release

# %% nbgrader={"grade": false, "grade_id": "release", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["engine"]
def release(self):
    """Free what the node has saved. The node itself stays. One that saved nothing does not change.

    self: Function

    >>> y = MiniTensor(2.0, requires_grad=True) + 1.0
    >>> y.grad_fn.release()
    >>> y.grad_fn.saved_tensors
    ()
    """
    ### BEGIN SOLUTION
    if self.saved:
        self.saved = None
    ### END SOLUTION


def saved_tensors(self):
    """What save_for_backward was given.

    self: Function
    Returns: tuple of arrays
    Raises RuntimeError(SECOND_BACKWARD) if they have been freed.

    >>> y = MiniTensor(2.0, requires_grad=True) ** 3
    >>> len(saved_tensors(y.grad_fn))
    1
    """
    ### BEGIN SOLUTION
    if self.saved is None:
        raise RuntimeError(SECOND_BACKWARD)
    return self.saved
    ### END SOLUTION


Function.release = release
Function.saved_tensors = property(saved_tensors)

# %% [markdown]
# ### Exercise 2: backward with retain_graph

# %% nbgrader={"grade": false, "grade_id": "backward", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["engine"]
def backward(self, gradient=None, retain_graph=False):
    """As before, and each node is released as soon as its rule has run, unless retain_graph is true.

    >>> x = MiniTensor(2.0, requires_grad=True)
    >>> y = x**2
    >>> y.backward(retain_graph=True)
    >>> y.backward()
    >>> x.grad
    MiniTensor(8.0)
    """
    if not self.requires_grad:
        raise RuntimeError("element 0 of tensors does not require grad and does not have a grad_fn")
    if gradient is None:
        if self.data.size != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        gradient = np.ones(self.shape)
    root, _ = edge_to(self)
    pending = {root: as_tensor(gradient).data}
    for node in topological_order(root):
        grad = pending.pop(node, None)
        if grad is None:
            continue
        if isinstance(node, AccumulateGrad):
            node.accumulate(grad)
            continue
        tensor = node.retaining() if node.retaining is not None else None
        if tensor is not None:
            tensor.grad = MiniTensor(grad.copy() if tensor.grad is None else tensor.grad.data + grad)
        shares = node.backward(node, grad)
        ### BEGIN SOLUTION
        if not retain_graph:
            node.release()
        ### END SOLUTION
        shares = shares if isinstance(shares, tuple) else (shares,)
        for (source, _), share, shape in zip(node.next_functions, shares, node.input_shapes):
            if source is not None and share is not None:
                share = sum_to(share, shape)
                pending[source] = pending[source] + share if source in pending else share


MiniTensor.backward = backward
