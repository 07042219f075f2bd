"""Plants classic mistakes in the solutions of lesson 09: each costs points where it was made, and on no other cell.

Random programs that write through views, in every style of the solutions, must agree with PyTorch or be refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from tests.course.planting import LessonTests, Planted, solved, styles

LESSON = "09_in_place_and_views"
PROGRAMS = 30

PLANTED = [
    Planted(
        "equal numbers count as the same tensor",
        "",
        "        if saved is tensor.data:\n",
        "        if np.array_equal(saved, tensor.data):\n",
        ("test_versions",),
    ),
    Planted(
        "the output is never looked at",
        "",
        '    tensors = [*enumerate(inputs), ("output", output)]\n',
        "    tensors = [*enumerate(inputs)]\n",
        ("test_versions", "test_change"),
    ),
    Planted(
        "a part of an input is no input",
        "",
        "if isinstance(saved, np.ndarray) and np.shares_memory(saved, tensor.data):",
        "if False:",
        ("test_versions",),
    ),
    Planted(
        "a part counts as the tensor itself",
        "",
        "            return Note(None, tensor._counter, tensor._counter.value)\n",
        "            return Note(0, tensor._counter, tensor._counter.value)\n",
        ("test_versions",),
    ),
    Planted(
        "a part of the output is overlooked",
        "",
        "            return Note(None, tensor._counter, tensor._counter.value)\n",
        "            return Note(None, tensor._counter, tensor._counter.value) if tensor is not output else None\n",
        ("test_versions",),
    ),
    Planted(
        "the note of a part counts by itself",
        "",
        "            return Note(None, tensor._counter, tensor._counter.value)\n",
        "            return Note(None, Counter(), tensor._counter.value)\n",
        ("test_versions",),
    ),
    Planted(
        "everything is expected at version 0",
        "",
        "            return Note(source, tensor._counter, tensor._counter.value)\n",
        "            return Note(source, tensor._counter, 0)\n",
        ("test_versions", "test_change", "test_copy_slices", "test_fingerprints"),
    ),
    Planted(
        "the first saved value is enough",
        "",
        "for position, note in enumerate(self.notes):",
        "for position, note in enumerate(self.notes[:1]):",
        ("test_versions",),
    ),
    Planted(
        "the last place of two",
        "",
        "    for source, tensor in tensors:\n        if saved is",
        "    for source, tensor in tensors[::-1]:\n        if saved is",
        ("test_versions",),
    ),
    Planted(
        "versions come before freed values",
        "",
        "    if self.saved is None:\n        raise RuntimeError(SECOND_BACKWARD)\n    for position",
        "    for position",
        ("test_versions",),
    ),
    Planted(
        "notes that are None are asked too",
        "",
        "        if note is not None and note.counter.value != note.version:\n            raise modified",
        "        if note.counter.value != note.version:\n            raise modified",
        ("test_versions",),
    ),
    Planted(
        "a note whose source is 0 is skipped",
        "",
        "        if note is not None and note.counter.value != note.version:\n            raise modified",
        "        if note is not None and (note.source is None or note.source) and note.counter.value != note.version:\n"
        "            raise modified",
        ("test_versions", "test_change", "test_view"),
    ),
    Planted(
        "the saved values are a list",
        "",
        "            raise modified(self, position)\n    return self.saved",
        "            raise modified(self, position)\n    return list(self.saved)",
        ("test_versions",),
    ),
    Planted(
        "nobody asks whether self may be written to",
        "",
        "    check_writable(self)\n    former",
        "    former",
        ("test_change", "test_copy_slices"),
    ),
    Planted(
        "what came back is taken over in any case",
        "",
        "    if new.requires_grad:\n        take_over(self, new)\n    self.data",
        "    take_over(self, new)\n    self.data",
        ("test_change",),
    ),
    Planted(
        "the former value is no copy",
        "",
        "    former = MiniTensor(self.data.copy())\n",
        "    former = MiniTensor(self.data)\n",
        ("test_change", "test_copy_slices"),
    ),
    Planted(
        "the former value has no history",
        "",
        "    former.requires_grad, former.grad_fn = self.requires_grad, self.grad_fn\n",
        "    pass\n",
        ("test_change", "test_copy_slices"),
    ),
    Planted(
        "the array is exchanged",
        "",
        "    self.data[...] = new.data\n",
        "    self.data = new.data\n",
        ("test_change", "test_view", "test_copy_slices"),
    ),
    Planted(
        "writes are not counted",
        "",
        "    self._counter.value += 1\n    return self\n",
        "    return self\n",
        ("test_change", "test_view", "test_fingerprints"),
    ),
    Planted(
        "the counter is set to 1",
        "",
        "    self._counter.value += 1\n    return self\n",
        "    self._counter.value = 1\n    return self\n",
        ("test_change", "test_view"),
    ),
    Planted(
        "smaller results are stretched",
        "",
        "    if new.shape != self.shape:\n",
        "    if new.data.size > self.data.size:\n",
        ("test_change",),
    ),
    Planted(
        "the new history is forgotten",
        "",
        "        take_over(self, new)\n    self.data",
        "        pass\n    self.data",
        ("test_change", "test_copy_slices"),
    ),
    Planted(
        "the write comes before it may be refused",
        "",
        "    if new.requires_grad:\n        take_over(self, new)\n    self.data[...] = new.data\n",
        "    self.data[...] = new.data\n    if new.requires_grad:\n        take_over(self, new)\n",
        ("test_change", "test_copy_slices"),
    ),
    Planted(
        "the write is counted before it may be refused",
        "",
        "    if new.requires_grad:\n        take_over(self, new)\n    self.data[...] = new.data\n"
        "    self._counter.value += 1\n    return self\n",
        "    self._counter.value += 1\n    if new.requires_grad:\n        take_over(self, new)\n"
        "    self.data[...] = new.data\n    return self\n",
        ("test_change", "test_copy_slices"),
    ),
    Planted(
        "what take_over does is done without it",
        "",
        "        take_over(self, new)\n    self.data",
        "        set_history(self, new.grad_fn)\n    self.data",
        ("test_change", "test_copy_slices"),
    ),
    Planted(
        "what is not recorded loses its history",
        "",
        "    if new.requires_grad:\n        take_over(self, new)\n    self.data",
        "    take_over(self, new) if new.requires_grad else vars(self).update(grad_fn=None)\n    self.data",
        ("test_change",),
    ),
    Planted(
        "views count by themselves",
        "",
        "        output._counter = self._counter\n        output._base",
        "        output._base",
        ("test_view",),
    ),
    Planted(
        "the base is the tensor before",
        "",
        "        output._base = self if self._base is None else self._base\n",
        "        output._base = self\n",
        ("test_view", "test_copy_slices"),
    ),
    Planted(
        "everything is a view",
        "",
        "    if np.may_share_memory(output.data, self.data):\n",
        "    if True:\n",
        ("test_view", "test_copy_slices"),
    ),
    Planted(
        "the recipe of a view of a view is taken as one of the base",
        "",
        "        remember(self, output, recipe)\n    return output\n",
        "        remember(output._base, output, recipe)\n    return output\n",
        ("test_view", "test_copy_slices"),
    ),
    Planted(
        "a copy remembers where it came from",
        "",
        "        remember(self, output, recipe)\n    return output\n",
        "        remember(self, output, recipe)\n    else:\n        output._recipe = recipe\n    return output\n",
        ("test_view",),
    ),
    Planted(
        "a view forgets where it came from",
        "",
        "        remember(self, output, recipe)\n    return output\n",
        "    return output\n",
        ("test_view", "test_copy_slices"),
    ),
    Planted(
        "a detached tensor counts by itself",
        "",
        "    output = MiniTensor(self.data)\n    output._counter = self._counter\n",
        "    output = MiniTensor(self.data)\n",
        ("test_view",),
    ),
    Planted(
        "a detached tensor is a copy",
        "",
        "    output = MiniTensor(self.data)\n    output._counter = self._counter\n",
        "    output = MiniTensor(self.data.copy())\n    output._counter = self._counter\n",
        ("test_view",),
    ),
    Planted(
        "a detached tensor is a view",
        "",
        "    output = MiniTensor(self.data)\n    output._counter = self._counter\n",
        "    output = MiniTensor(self.data)\n    output._counter, output._base = self._counter, self\n",
        ("test_view", "test_copy_slices"),
    ),
    Planted(
        "a plain tensor is its own detached tensor",
        "",
        "    output = MiniTensor(self.data)\n    output._counter = self._counter\n",
        "    output = MiniTensor(self.data) if self.requires_grad else self\n    output._counter = self._counter\n",
        ("test_view",),
    ),
    Planted(
        "the base is read column by column",
        "",
        "        result = base.copy()\n",
        "        result = base.T.reshape(base.shape).copy()\n",
        ("test_copy_slices",),
    ),
    Planted(
        "parts have one axis",
        "",
        "        return rest, grad.take(ctx.positions) * stayed\n",
        "        return rest, grad.take(ctx.positions).ravel() * stayed.ravel()\n",
        ("test_copy_slices",),
    ),
    Planted(
        "the replaced entries of the base get gradient",
        "",
        "        rest.put(ctx.positions, 0.0)\n",
        "",
        ("test_copy_slices",),
    ),
    Planted(
        "zeros are written to a copy of a gradient stored by columns",
        "",
        "        rest = grad.copy()\n        rest.put(ctx.positions, 0.0)\n",
        "        rest = np.array(grad)\n        rest.reshape(-1)[ctx.positions] = 0.0\n",
        ("test_copy_slices",),
    ),
    Planted(
        "the incoming gradient is changed",
        "",
        "        rest = grad.copy()\n",
        "        rest = grad\n",
        ("test_copy_slices",),
    ),
    Planted(
        "the base gets no gradient",
        "",
        "        return rest, grad.take(ctx.positions) * stayed\n",
        "        return 0 * rest, grad.take(ctx.positions) * stayed\n",
        ("test_copy_slices",),
    ),
    Planted(
        "the part gets the wrong entries",
        "",
        "        return rest, grad.take(ctx.positions) * stayed\n",
        "        return rest, grad.ravel()[: stayed.size].reshape(stayed.shape) * stayed\n",
        ("test_copy_slices",),
    ),
    Planted(
        "both of two writes to a place get gradient",
        "",
        "        return rest, grad.take(ctx.positions) * stayed\n",
        "        return rest, grad.take(ctx.positions)\n",
        ("test_copy_slices",),
    ),
    Planted(
        "a smaller part is repeated, not stretched",
        "",
        "result.put(positions, np.broadcast_to(part, positions.shape))",
        "result.put(positions, part)",
        ("test_copy_slices",),
    ),
    Planted(
        "the first of two writes stays",
        "",
        "        owner.put(ctx.positions, numbers)\n",
        "        owner.put(ctx.positions.ravel()[::-1], numbers.ravel()[::-1])\n",
        ("test_copy_slices",),
    ),
    Planted(
        "forward writes to the base",
        "",
        "        result = base.copy()\n",
        "        result = base\n",
        ("test_copy_slices",),
    ),
    Planted(
        "a tensor without a history is not expected",
        "",
        "topological_order(output.grad_fn) if output.grad_fn is not None else ()",
        "topological_order(output.grad_fn)",
        ("test_fingerprints",),
    ),
    Planted(
        "freed values are gone through",
        "",
        "enumerate(node.saved or ())",
        "enumerate(node.saved)",
        ("test_fingerprints",),
    ),
    Planted(
        "a sum is the fingerprint",
        "",
        "                found[node, position] = hash(saved.tobytes())\n    return found\n    ### END SOLUTION\n",
        "                found[node, position] = hash(saved.tobytes())\n    return found\n    ### END SOLUTION\n\n\n"
        "def hash(text):\n    return sum(np.frombuffer(text))\n",
        ("test_fingerprints",),
    ),
    Planted(
        "what is no array has a fingerprint too",
        "",
        "            if isinstance(saved, np.ndarray):\n"
        "                found[node, position] = hash(saved.tobytes())\n",
        "            found[node, position] = hash(np.asarray(saved).tobytes())\n",
        ("test_fingerprints",),
    ),
    Planted(
        "the names come in another order",
        "",
        "            names.append(node.name())\n",
        "            names.insert(0, node.name())\n",
        ("test_fingerprints",),
    ),
    Planted(
        "the names are sorted",
        "",
        "    return names\n    ### END SOLUTION",
        "    return sorted(names)\n    ### END SOLUTION",
        ("test_fingerprints",),
    ),
    Planted(
        "nodes are listed in place of names",
        "",
        "            names.append(node.name())\n",
        "            names.append(node)\n",
        ("test_fingerprints",),
    ),
    Planted(
        "the result starts from zeros",
        "",
        "        result = base.copy()\n",
        "        result = np.zeros(base.shape)\n",
        ("test_copy_slices",),
    ),
    Planted(
        "the note of a whole tensor has a counter of its own",
        "",
        "            return Note(source, tensor._counter, tensor._counter.value)\n",
        "            return Note(source, Counter(), tensor._counter.value)\n",
        ("test_versions", "test_change", "test_view", "test_copy_slices", "test_fingerprints"),
    ),
    Planted(
        "counted writes are listed too",
        "",
        "        counted = note is not None and note.counter.value != note.version\n",
        "        counted = False\n",
        ("test_fingerprints",),
    ),
    Planted(
        "only the memory of tensors is looked at",
        "",
        "        counted = note is not None and note.counter.value != note.version\n",
        "        counted = note is None or note.counter.value != note.version\n",
        ("test_fingerprints",),
    ),
    Planted(
        "one fingerprint per node",
        "",
        "                found[node, position] = hash(saved.tobytes())\n",
        "                found.setdefault((node, 0), hash(saved.tobytes()))\n",
        ("test_fingerprints",),
    ),
    Planted(
        "freed values are asked for",
        "",
        "        if node.saved is None:\n            continue\n",
        "",
        ("test_fingerprints",),
    ),
    Planted(
        "freed values are looked for last",
        "",
        "    if self.saved is None:\n        raise RuntimeError(SECOND_BACKWARD)\n"
        "    for position, note in enumerate(self.notes):\n"
        "        if note is not None and note.counter.value != note.version:\n"
        "            raise modified(self, position)\n",
        "    for position, note in enumerate(self.notes):\n"
        "        if note is not None and note.counter.value != note.version:\n"
        "            raise modified(self, position)\n"
        "    if self.saved is None:\n        raise RuntimeError(SECOND_BACKWARD)\n",
        ("test_versions",),
    ),
    Planted(
        "an empty tuple counts as freed",
        "",
        "    if self.saved is None:\n        raise RuntimeError(SECOND_BACKWARD)\n",
        "    if not self.saved:\n        raise RuntimeError(SECOND_BACKWARD)\n",
        ("test_versions",),
    ),
    Planted(
        "a tensor of shape () cannot be written to",
        "",
        "    self.data[...] = new.data\n",
        "    self.data[:] = new.data\n",
        ("test_change", "test_view", "test_copy_slices"),
    ),
    Planted(
        "a copy of a transposed array is written to",
        "",
        "    self.data[...] = new.data\n",
        "    self.data.reshape(-1)[:] = new.data.reshape(-1)\n",
        ("test_change", "test_copy_slices"),
    ),
    Planted(
        "each write makes a counter",
        "",
        "    self._counter.value += 1\n    return self\n",
        "    old = self._counter.value\n    self._counter = Counter()\n    self._counter.value = old + 1\n"
        "    return self\n",
        ("test_change", "test_view", "test_fingerprints"),
    ),
    Planted(
        "the former value is asked whether it may be written to",
        "",
        "    check_writable(self)\n    former = MiniTensor(self.data.copy())\n"
        "    former.requires_grad, former.grad_fn = self.requires_grad, self.grad_fn\n",
        "    former = MiniTensor(self.data.copy())\n"
        "    former.requires_grad, former.grad_fn = self.requires_grad, self.grad_fn\n    check_writable(former)\n",
        ("test_change", "test_copy_slices"),
    ),
    Planted(
        "the former value is a clone",
        "",
        "    former = MiniTensor(self.data.copy())\n"
        "    former.requires_grad, former.grad_fn = self.requires_grad, self.grad_fn\n",
        "    former = self.clone()\n",
        ("test_change",),
    ),
    Planted(
        "the former value has no grad_fn",
        "",
        "    former.requires_grad, former.grad_fn = self.requires_grad, self.grad_fn\n",
        "    former.requires_grad = self.requires_grad\n",
        ("test_change", "test_copy_slices"),
    ),
    Planted(
        "the former value has the counter of self",
        "",
        "    former.requires_grad, former.grad_fn = self.requires_grad, self.grad_fn\n",
        "    former.requires_grad, former.grad_fn = self.requires_grad, self.grad_fn\n"
        "    former._counter = self._counter\n",
        ("test_change", "test_copy_slices"),
    ),
    Planted(
        "the new history is set by hand",
        "",
        "        take_over(self, new)\n    self.data",
        "        self.requires_grad, self.grad_fn = True, new.grad_fn\n    self.data",
        ("test_change", "test_copy_slices"),
    ),
    Planted(
        "a view has no history",
        "",
        "    output = recipe(self)\n    if np.may_share_memory",
        "    output = recipe(self.detach())\n    if np.may_share_memory",
        ("test_view", "test_copy_slices"),
    ),
    Planted(
        "another tensor is returned than the marked one",
        "",
        "        remember(self, output, recipe)\n    return output\n",
        "        remember(self, output, recipe)\n    return recipe(self)\n",
        ("test_view", "test_copy_slices"),
    ),
    Planted(
        "a recipe that makes no view from another base",
        "",
        "        remember(self, output, recipe)\n    return output\n",
        "        remember(self, output, lambda a: output)\n    return output\n",
        ("test_view", "test_copy_slices"),
    ),
    Planted(
        "with recording off there are no views",
        "",
        "    if np.may_share_memory(output.data, self.data):\n",
        "    if is_grad_enabled() and np.may_share_memory(output.data, self.data):\n",
        ("test_view", "test_copy_slices"),
    ),
    Planted(
        "the tensor gets the counter of its detached tensor",
        "",
        "    output = MiniTensor(self.data)\n    output._counter = self._counter\n",
        "    output = MiniTensor(self.data)\n    self._counter = output._counter\n",
        ("test_view",),
    ),
    Planted(
        "detach counts a write",
        "",
        "    output = MiniTensor(self.data)\n    output._counter = self._counter\n",
        "    output = MiniTensor(self.data)\n    output._counter = self._counter\n    output._counter.value += 1\n",
        ("test_view",),
    ),
    Planted(
        "the tensor itself is detached",
        "",
        "    output = MiniTensor(self.data)\n    output._counter = self._counter\n",
        "    output, self.requires_grad, self.grad_fn = self, False, None\n",
        ("test_view",),
    ),
    Planted(
        "the base gets None",
        "",
        "        return rest, grad.take(ctx.positions) * stayed\n",
        "        return None, grad.take(ctx.positions) * stayed\n",
        ("test_copy_slices",),
    ),
    Planted(
        "the gradients are swapped",
        "",
        "        return rest, grad.take(ctx.positions) * stayed\n",
        "        return grad.take(ctx.positions) * stayed, rest\n",
        ("test_copy_slices",),
    ),
    Planted(
        "the positions are kept in the class",
        "",
        "        ctx.positions = positions\n        result = base.copy()\n",
        "        CopySlices.positions = positions\n        result = base.copy()\n",
        ("test_copy_slices",),
    ),
    Planted(
        "all fingerprints are in one dict",
        "",
        "    found = {}\n",
        "    found = vars(fingerprints).setdefault('found', {})\n    found.clear()\n",
        ("test_fingerprints",),
    ),
    Planted(
        "nodes are listed as they are found",
        "",
        "    for node in topological_order(output.grad_fn) if output.grad_fn is not None else ():\n",
        "    seen, waiting = [], [output.grad_fn] if output.grad_fn is not None else []\n"
        "    while waiting:\n        node = waiting.pop()\n        if node in seen:\n            continue\n"
        "        seen.append(node)\n"
        "        waiting += [source for source, _ in node.next_functions if source is not None]\n"
        "    for node in seen:\n",
        ("test_fingerprints",),
    ),
    Planted(
        "any write counts, even one before the note",
        "",
        "        if note is not None and note.counter.value != note.version:\n            raise modified",
        "        if note is not None and note.counter.value != 0:\n            raise modified",
        ("test_versions", "test_change", "test_copy_slices"),
    ),
    Planted(
        "what can be broadcast is let through",
        "",
        "    if new.shape != self.shape:\n",
        "    if np.broadcast_shapes(new.shape, self.shape) != self.shape:\n",
        ("test_change",),
    ),
    Planted(
        "a tensor that required no grad takes nothing over",
        "",
        "    if new.requires_grad:\n        take_over(self, new)\n    self.data",
        "    if new.requires_grad and self.requires_grad:\n        take_over(self, new)\n    self.data",
        ("test_change", "test_copy_slices"),
    ),
    Planted(
        "the base remembers a detached tensor",
        "",
        "    output = MiniTensor(self.data)\n    output._counter = self._counter\n",
        "    with no_grad():\n        output = self.reshape(*self.shape) if self.shape else self[...]\n"
        "    output._base = None\n",
        ("test_view",),
    ),
    Planted(
        "the gradient of a part is not summed",
        "",
        "        return rest, grad.take(ctx.positions) * stayed\n",
        "        return rest, (grad.take(ctx.positions) * stayed).reshape(ctx.input_shapes[1])\n",
        ("test_copy_slices",),
    ),
    Planted(
        "a write to a copy of a base stored by columns",
        "",
        "        result = base.copy()\n        result.put(positions, np.broadcast_to(part, positions.shape))\n",
        "        result = np.copy(base)\n        result.reshape(-1)[positions] = part\n",
        ("test_copy_slices",),
    ),
    Planted(
        "a NaN is always a change",
        "",
        "                found[node, position] = hash(saved.tobytes())\n    return found\n    ### END SOLUTION\n",
        "                found[node, position] = hash(saved.tobytes())\n    return found\n    ### END SOLUTION\n\n\n"
        "def hash(text):\n    return text if len(text) % 8 else np.frombuffer(text).tolist()\n",
        ("test_fingerprints",),
    ),
    Planted(
        "nearly the same is the same",
        "",
        "                found[node, position] = hash(saved.tobytes())\n    return found\n    ### END SOLUTION\n",
        "                found[node, position] = hash(saved.tobytes())\n    return found\n    ### END SOLUTION\n\n\n"
        "def hash(text):\n    return text if len(text) % 8 else str(np.frombuffer(text).round(8).tolist())\n",
        ("test_fingerprints",),
    ),
    Planted(
        "a value without a note ends the search",
        "",
        "        if note is not None and note.counter.value != note.version:\n            raise modified",
        "        if note is None:\n"
        "            break\n"
        "        if note.counter.value != note.version:\n"
        "            raise modified",
        ("test_versions",),
    ),
    Planted(
        "a part is expected at version 0",
        "",
        "            return Note(None, tensor._counter, tensor._counter.value)\n",
        "            return Note(None, tensor._counter, 0)\n",
        ("test_versions",),
    ),
    Planted(
        "only the number of axes is compared",
        "",
        "    if new.shape != self.shape:\n",
        "    if len(new.shape) != len(self.shape):\n",
        ("test_change",),
    ),
    Planted(
        "a detached tensor keeps its grad_fn",
        "",
        "    output = MiniTensor(self.data)\n    output._counter = self._counter\n",
        "    output = MiniTensor(self.data)\n    output._counter, output.grad_fn = self._counter, self.grad_fn\n",
        ("test_view",),
    ),
    Planted(
        "a freed node ends the search",
        "",
        "        if node.saved is None:\n            continue\n",
        "        if node.saved is None:\n            break\n",
        ("test_fingerprints",),
    ),
    Planted(
        "a write before the note counts",
        "",
        "        counted = note is not None and note.counter.value != note.version\n",
        "        counted = note is not None and note.counter.value != 0\n",
        ("test_fingerprints",),
    ),
    Planted(
        "a counted write to one array counts for the whole node",
        "",
        "        counted = note is not None and note.counter.value != note.version\n",
        "        counted = any(note is not None and note.counter.value != note.version for note in node.notes)\n",
        ("test_fingerprints",),
    ),
]


class TestLesson(LessonTests):
    lesson = LESSON
    planted = PLANTED
    test_cells = 5
    examples = 25
    visible = True


@pytest.fixture(scope="module", params=["", *styles(LESSON)], ids=lambda style: style or "solution")
def engine(request: pytest.FixtureRequest) -> dict[str, Any]:
    return solved(LESSON, request.param)


def random_program(seed: int) -> Callable[[Any, Any], Any]:
    """A program that makes views and writes to tensors, views and bases in an order drawn from the seed."""

    def program(a: Any, b: Any) -> Any:
        draw = np.random.default_rng(seed)
        tensors = [a * 1.0, b * 2.0]
        for _ in range(draw.integers(2, 9)):
            t, other = (tensors[draw.integers(len(tensors))] for _ in range(2))
            number = other.reshape(-1)[:2].sum()
            actions = [
                lambda t=t: tensors.append(t.transpose(0, 1) if len(t.shape) == 2 else t.reshape(-1)),
                lambda t=t: tensors.append(t[0] if t.shape else t.reshape(-1)),
                lambda t=t: tensors.append(t.reshape(-1)[::2]),
                lambda t=t: tensors.append(t.exp()),
                lambda t=t: tensors.append(t * t),
                lambda t=t: t.mul_(0.5),
                lambda t=t, number=number: t.mul_(number),
                lambda t=t, other=other: t.sub_(other.sum()),
                lambda t=t, number=number: t.copy_(number),
                lambda t=t: t.zero_(),
                lambda t=t, number=number: t.__setitem__(-1, number) if t.shape else t.add_(number),
                lambda t=t, number=number: t.__setitem__([0], number) if t.shape else t.add_(1.0),
            ]
            actions[draw.integers(len(actions))]()
        return sum((t * t).sum() + t.tanh().sum() for t in tensors)

    return program


def gradients(program: Callable[[Any, Any], Any], make: Callable[[Any], Any], arrays: Any) -> Any:
    """The gradients of a program, or the beginning of its error."""
    inputs = [make(array) for array in arrays]
    try:
        program(*inputs).backward()
    except RuntimeError as error:
        return str(error)[:60]
    return [np.zeros(x.shape) if x.grad is None else np.array(x.grad.data.tolist()) for x in inputs]


def test_programs_that_write_through_views_agree_with_pytorch(engine: dict[str, Any]) -> None:
    draw, right, refused = np.random.default_rng(1), 0, 0
    for seed in range(PROGRAMS):
        arrays = 0.3 * draw.normal(size=(2, 3, 3))
        mine = gradients(random_program(seed), lambda v: engine["MiniTensor"](v.copy(), requires_grad=True), arrays)
        theirs = gradients(random_program(seed), lambda v: torch.tensor(v, requires_grad=True), arrays)
        if isinstance(mine, str) or isinstance(theirs, str):
            assert mine == theirs
            refused += 1
        else:
            np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9)
            right += 1
    assert right > 0
    assert refused > 0


def test_a_view_made_with_recording_off_never_gives_a_wrong_gradient(engine: dict[str, Any]) -> None:
    tensor: Any = engine["MiniTensor"]([1.0, 2.0, 3.0], requires_grad=True)
    y = tensor * 2
    with engine["no_grad"]():
        quiet = y[:2]
    with pytest.raises(RuntimeError, match="created in no_grad mode and is being modified"):
        quiet.mul_(3.0)
    assert y.data.tolist() == [2.0, 4.0, 6.0]
    y.mul_(2.0)
    assert quiet.data.tolist() == [4.0, 8.0]
    with pytest.raises(RuntimeError, match="its base or another view of its base has been modified"):
        quiet.sum().backward()
    y.sum().backward()
    assert tensor.grad.data.tolist() == [4.0, 4.0, 4.0]


def test_an_operation_that_returns_its_input_gets_memory_of_its_own(engine: dict[str, Any]) -> None:
    class Same(engine["Function"]):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            return a[::-1]

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad[::-1]

    x = engine["MiniTensor"]([1.0, 2.0], requires_grad=True)
    y = Same.apply(x * 1.0)
    y.mul_(y.detach() * 0 + 5.0)
    y.backward(np.array([1.0, 10.0]))
    assert x.grad.data.tolist() == [50.0, 5.0]
    assert x.data.tolist() == [1.0, 2.0]


def test_a_marked_tensor_is_written_to_in_inference_mode_only(engine: dict[str, Any]) -> None:
    with engine["inference_mode"]():
        marked = engine["MiniTensor"]([1.0, 2.0])
        marked.add_(1.0)
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
        marked.add_(1.0)
    assert marked.data.tolist() == [2.0, 3.0]
    with pytest.raises(RuntimeError, match="do not track version"):
        _ = marked._version


def test_views_that_nobody_holds_are_not_kept_alive(engine: dict[str, Any]) -> None:
    x = engine["MiniTensor"](np.zeros((3, 3)))
    for row in range(3):
        x[row].add_(1.0)
    assert len(x._views) <= 1  # the last one may still have a name
    assert x.data.tolist() == [[1.0] * 3] * 3
