"""Plants classic mistakes in the solutions of lesson 07: each costs points where it was made, and on no other cell.

Also tries what the notebook's own checks cannot: threads, and the engine that the next lesson starts from.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from tests.course.planting import LessonTests, Planted, marks, solved, styles

LESSON = "07_grad_modes"

PLANTED = [
    Planted(
        "apply records whatever the switch says",
        "",
        "    if is_grad_enabled() and any(x.requires_grad for x in inputs):\n        record(ctx, inputs, output)",
        "    if any(x.requires_grad for x in inputs):\n        record(ctx, inputs, output)",
        ("test_apply", "test_no_grad", "test_decorated", "test_inference_mode"),
    ),
    Planted(
        "apply records what nobody needs",
        "",
        "    if is_grad_enabled() and any(x.requires_grad for x in inputs):\n        record(ctx, inputs, output)",
        "    if is_grad_enabled():\n        record(ctx, inputs, output)",
        ("test_apply", "test_inference_mode"),
    ),
    Planted(
        "apply wants all inputs to require grad",
        "",
        "and any(x.requires_grad",
        "and all(x.requires_grad",
        ("test_apply", "test_no_grad", "test_decorated", "test_detach", "test_inference_mode", "test_gan_losses"),
    ),
    Planted(
        "the last input decides",
        "",
        "any(x.requires_grad for x in inputs)",
        "inputs[-1].requires_grad",
        ("test_apply", "test_no_grad", "test_decorated", "test_detach", "test_inference_mode", "test_gan_losses"),
    ),
    Planted(
        "only the inputs that require grad get an edge",
        "",
        "        record(ctx, inputs, output)\n    return output",
        "        record(ctx, [x for x in inputs if x.requires_grad], output)\n    return output",
        ("test_apply", "test_detach", "test_inference_mode", "test_gan_losses"),
    ),
    Planted(
        "the inputs stop requiring grad",
        "",
        "    if is_grad_enabled() and any(x.requires_grad for x in inputs):\n        record(ctx, inputs, output)",
        "    for x in inputs:\n        x.requires_grad = x.requires_grad and is_grad_enabled()\n"
        "    if any(x.requires_grad for x in inputs):\n        record(ctx, inputs, output)",
        ("test_apply", "test_no_grad", "test_decorated", "test_inference_mode"),
    ),
    Planted(
        "apply returns what record returns",
        "",
        "        record(ctx, inputs, output)\n    return output",
        "        output = record(ctx, inputs, output)\n    return output",
        ("test_apply", "test_no_grad", "test_decorated", "test_detach", "test_inference_mode", "test_gan_losses"),
    ),
    Planted(
        "record gets the class of the operation",
        "",
        "        record(ctx, inputs, output)\n    return output",
        "        record(cls, inputs, output)\n    return output",
        ("test_apply", "test_no_grad", "test_decorated", "test_detach", "test_inference_mode", "test_gan_losses"),
    ),
    Planted(
        "apply returns an array where nothing is recorded",
        "",
        "        record(ctx, inputs, output)\n    return output",
        "        record(ctx, inputs, output)\n    else:\n        output = output.data\n    return output",
        ("test_apply", "test_no_grad", "test_decorated", "test_inference_mode"),
    ),
    Planted(
        "the switch is not called",
        "",
        "if is_grad_enabled() and any(",
        "if is_grad_enabled and any(",
        ("test_apply", "test_no_grad", "test_decorated", "test_inference_mode"),
    ),
    Planted(
        "the switch of the class is read",
        "",
        "if is_grad_enabled() and any(",
        "if Switches.recording and any(",
        ("test_apply", "test_no_grad", "test_decorated", "test_inference_mode"),
    ),
    Planted(
        "apply sets requires_grad whatever the switch says",
        "",
        "    if is_grad_enabled() and any(x.requires_grad for x in inputs):\n",
        "    output.requires_grad = any(x.requires_grad for x in inputs)\n"
        "    if is_grad_enabled() and output.requires_grad:\n",
        ("test_apply", "test_no_grad", "test_decorated", "test_inference_mode"),
    ),
    Planted(
        "only leaves count as inputs that require grad",
        "",
        "any(x.requires_grad for x in inputs)",
        "any(x.requires_grad and x.is_leaf for x in inputs)",
        ("test_apply", "test_decorated", "test_detach", "test_gan_losses"),
    ),
    Planted(
        "all blocks of a mode share what they found",
        "",
        "        self.before = switches.recording\n",
        "        type(self).before = switches.recording\n",
        ("test_no_grad", "test_decorated"),
    ),
    Planted(
        "the value of the class is set",
        "",
        "        self.before = switches.recording\n        switches.recording = self.recording\n",
        "        self.before = Switches.recording\n        Switches.recording = self.recording\n",
        ("test_no_grad", "test_decorated", "test_inference_mode"),
    ),
    Planted(
        "a second block with the same object records",
        "",
        "        self.before = switches.recording\n        switches.recording = self.recording\n"
        "        ### END SOLUTION\n\n    def __exit__(self, kind, error, traceback):\n"
        "        ### BEGIN SOLUTION\n        switches.recording = self.before\n",
        "        self.recording, switches.recording = switches.recording, self.recording\n\n"
        "    def __exit__(self, kind, error, traceback):\n        switches.recording = self.recording\n",
        ("test_no_grad",),
    ),
    Planted(
        "leaving a block switches recording on",
        "",
        "        switches.recording = self.before\n",
        "        switches.recording = True\n",
        ("test_no_grad", "test_decorated"),
    ),
    Planted(
        "leaving a block leaves the switch alone",
        "",
        "        switches.recording = self.before\n",
        "        pass\n",
        ("test_no_grad", "test_decorated", "test_inference_mode"),
    ),
    Planted(
        "leaving a block inverts the switch",
        "",
        "        switches.recording = self.before\n",
        "        switches.recording = not self.recording\n",
        ("test_no_grad", "test_decorated"),
    ),
    Planted(
        "an error leaves the switch alone",
        "",
        "        switches.recording = self.before\n",
        "        if kind is None:\n            switches.recording = self.before\n",
        ("test_no_grad", "test_decorated"),
    ),
    Planted(
        "the error is swallowed",
        "",
        "        switches.recording = self.before\n",
        "        switches.recording = self.before\n        return True\n",
        ("test_no_grad", "test_decorated"),
    ),
    Planted(
        "another error of the same type comes out",
        "",
        "        switches.recording = self.before\n",
        "        switches.recording = self.before\n        if kind is not None:\n            raise kind\n",
        ("test_no_grad", "test_decorated"),
    ),
    Planted(
        "enable_grad is forgotten",
        "",
        "        switches.recording = self.recording\n",
        "        switches.recording = False\n",
        ("test_no_grad", "test_decorated"),
    ),
    Planted(
        "one object for all calls of a function that calls itself",
        "",
        "        with copy.copy(self):\n            return function(*arguments, **named)",
        "        with self:\n            return function(*arguments, **named)",
        ("test_decorated",),
    ),
    Planted(
        "every decorator is no_grad",
        "",
        "        with copy.copy(self):\n            return function(*arguments, **named)",
        "        with no_grad():\n            return function(*arguments, **named)",
        ("test_decorated",),
    ),
    Planted(
        "the docstring is lost",
        "",
        "    @functools.wraps(function)\n    def call(*arguments, **named):\n        with copy.copy(self):\n"
        "            return function(*arguments, **named)\n\n    return call",
        "    def call(*arguments, **named):\n        with copy.copy(self):\n"
        "            return function(*arguments, **named)\n\n    call.__name__ = function.__name__\n    return call",
        ("test_decorated",),
    ),
    Planted(
        "the mode holds while decorating",
        "",
        "        with copy.copy(self):\n            return function(*arguments, **named)",
        "        return function(*arguments, **named)",
        ("test_decorated",),
    ),
    Planted(
        "the mode holds while the new function is defined",
        "",
        "    @functools.wraps(function)\n    def call(*arguments, **named):\n        with copy.copy(self):\n"
        "            return function(*arguments, **named)\n\n    return call",
        "    with self:\n\n        @functools.wraps(function)\n        def call(*arguments, **named):\n"
        "            return function(*arguments, **named)\n\n    return call",
        ("test_decorated",),
    ),
    Planted(
        "the result is not returned",
        "",
        "        with copy.copy(self):\n            return function(*arguments, **named)",
        "        with copy.copy(self):\n            function(*arguments, **named)",
        ("test_decorated",),
    ),
    Planted(
        "named arguments do not reach the function",
        "",
        "    def call(*arguments, **named):\n        with copy.copy(self):\n"
        "            return function(*arguments, **named)",
        "    def call(*arguments):\n        with copy.copy(self):\n            return function(*arguments)",
        ("test_decorated",),
    ),
    Planted(
        "the name is lost",
        "",
        "    @functools.wraps(function)\n    def call(*arguments, **named):\n        with copy.copy(self):",
        "    def call(*arguments, **named):\n        with copy.copy(self):",
        ("test_decorated",),
    ),
    Planted(
        "wraps without its argument",
        "",
        "    @functools.wraps(function)\n    def call(*arguments, **named):\n        with copy.copy(self):",
        "    @functools.wraps\n    def call(*arguments, **named):\n        with copy.copy(self):",
        ("test_decorated",),
    ),
    Planted(
        "the function is called while decorating",
        "",
        "        with copy.copy(self):\n            return function(*arguments, **named)\n\n    return call\n",
        "        with copy.copy(self):\n            return function(*arguments, **named)\n\n    return call()\n",
        ("test_decorated",),
    ),
    Planted(
        "detach copies",
        "",
        "    return MiniTensor(self.data)\n",
        "    return MiniTensor(self.data.copy())\n",
        ("test_detach",),
    ),
    Planted(
        "detach needs an axis",
        "",
        "    return MiniTensor(self.data)\n",
        "    return MiniTensor(self.data[:])\n",
        ("test_detach",),
    ),
    Planted(
        "detach changes the original",
        "",
        "    return MiniTensor(self.data)\n",
        "    self.requires_grad, self.grad_fn = False, None\n    return self\n",
        ("test_detach",),
    ),
    Planted(
        "detach takes the history of the original",
        "",
        "    return MiniTensor(self.data)\n",
        "    self.grad_fn = None\n    return MiniTensor(self.data)\n",
        ("test_detach",),
    ),
    Planted(
        "detach takes the gradient of the original",
        "",
        "    return MiniTensor(self.data)\n",
        "    self.grad = None\n    return MiniTensor(self.data)\n",
        ("test_detach",),
    ),
    Planted(
        "detach returns a constant itself",
        "",
        "    return MiniTensor(self.data)\n",
        "    return MiniTensor(self.data) if self.requires_grad else self\n",
        ("test_detach",),
    ),
    Planted(
        "detach returns the original where nothing is recorded",
        "",
        "    return MiniTensor(self.data)\n",
        "    return MiniTensor(self.data) if is_grad_enabled() else self\n",
        ("test_detach",),
    ),
    Planted(
        "every decorator is the class of both",
        "",
        "        with copy.copy(self):\n            return function(*arguments, **named)",
        "        with GradMode():\n            return function(*arguments, **named)",
        ("test_decorated",),
    ),
    Planted(
        "detach returns a leaf that requires grad",
        "",
        "    return MiniTensor(self.data)\n",
        "    return MiniTensor(self.data, requires_grad=self.requires_grad)\n",
        ("test_detach",),
    ),
    Planted(
        "detach copies where nothing is recorded",
        "",
        "    return MiniTensor(self.data)\n",
        "    return MiniTensor(self.data if is_grad_enabled() else self.data.copy())\n",
        ("test_detach",),
    ),
    Planted(
        "one object of inference_mode for all calls",
        "",
        "            with inference_mode(self.mode):\n",
        "            with self:\n",
        ("test_inference_mode",),
    ),
    Planted(
        "named arguments do not reach a function in inference mode",
        "",
        "            with inference_mode(self.mode):\n                return function(*arguments, **named)",
        "            with inference_mode(self.mode):\n                return function(*arguments)",
        ("test_inference_mode",),
    ),
    Planted(
        "the result of a function in inference mode is not returned",
        "",
        "            with inference_mode(self.mode):\n                return function(*arguments, **named)",
        "            with inference_mode(self.mode):\n                function(*arguments, **named)",
        ("test_inference_mode",),
    ),
    Planted(
        "equal numbers count as the marked array",
        "",
        "any(saved is x.data for saved in ctx.saved_tensors)",
        "any(np.array_equal(saved, x.data) for saved in ctx.saved_tensors)",
        ("test_inference_mode",),
    ),
    Planted(
        "inference_mode records",
        "",
        "= not self.mode, self.mode",
        "= True, self.mode",
        ("test_inference_mode",),
    ),
    Planted(
        "inference_mode forgets to take the mark away",
        "",
        "        switches.recording, switches.inference = self.before",
        "        switches.recording = self.before[0]",
        ("test_inference_mode",),
    ),
    Planted(
        "all blocks of inference_mode share what they found",
        "",
        "        self.before = switches.recording, switches.inference\n",
        "        inference_mode.before = switches.recording, switches.inference\n",
        ("test_inference_mode",),
    ),
    Planted(
        "enable_grad records in inference mode",
        "",
        "    if switches.inference:\n        return\n",
        "",
        ("test_inference_mode",),
    ),
    Planted(
        "record is written into apply",
        "",
        "        record(ctx, inputs, output)\n    return output",
        "        ctx.next_functions = tuple(edge_to(x) for x in inputs)\n"
        "        ctx.input_shapes = tuple(x.shape for x in inputs)\n"
        "        output.requires_grad, output.grad_fn = True, ctx\n    return output",
        ("test_inference_mode",),
    ),
    Planted(
        "what a marked tensor enters is not recorded",
        "",
        "            raise RuntimeError(SAVED_INFERENCE)\n    ### END SOLUTION\n",
        "            raise RuntimeError(SAVED_INFERENCE)\n        if x.is_inference():\n            return\n",
        ("test_inference_mode",),
    ),
    Planted(
        "the error has a shorter text",
        "",
        "            raise RuntimeError(SAVED_INFERENCE)",
        "            raise RuntimeError(SAVED_INFERENCE[:47])",
        ("test_inference_mode",),
    ),
    Planted(
        "the error has no text",
        "",
        "            raise RuntimeError(SAVED_INFERENCE)",
        "            raise RuntimeError",
        ("test_inference_mode",),
    ),
    Planted(
        "the error of a block of inference_mode is replaced",
        "",
        "        switches.recording, switches.inference = self.before\n",
        "        switches.recording, switches.inference = self.before\n        if kind is not None:\n"
        "            raise kind\n",
        ("test_inference_mode",),
    ),
    Planted(
        "an error leaves inference mode on",
        "",
        "        switches.recording, switches.inference = self.before\n",
        "        if kind is None:\n            switches.recording, switches.inference = self.before\n",
        ("test_inference_mode",),
    ),
    Planted(
        "inference_mode swallows the error",
        "",
        "        switches.recording, switches.inference = self.before\n",
        "        switches.recording, switches.inference = self.before\n        return True\n",
        ("test_inference_mode",),
    ),
    Planted(
        "inference_mode(False) is inference_mode",
        "",
        "= not self.mode, self.mode",
        "= False, True",
        ("test_inference_mode",),
    ),
    Planted(
        "inference_mode(False) as a decorator is inference_mode",
        "",
        "            with inference_mode(self.mode):\n",
        "            with inference_mode():\n",
        ("test_inference_mode",),
    ),
    Planted(
        "a marked tensor may be saved",
        "",
        "            raise RuntimeError(SAVED_INFERENCE)",
        "            pass",
        ("test_inference_mode",),
    ),
    Planted(
        "saved arrays are compared by numbers",
        "",
        "any(saved is x.data for saved in ctx.saved_tensors)",
        "x.data in ctx.saved_tensors",
        ("test_inference_mode",),
    ),
    Planted(
        "whatever is saved beside a marked tensor is refused",
        "",
        "any(saved is x.data for saved in ctx.saved_tensors)",
        "len(ctx.saved_tensors) > 0",
        ("test_inference_mode",),
    ),
    Planted(
        "what is not marked is refused too",
        "",
        "if x.is_inference() and any(saved",
        "if any(saved",
        ("test_inference_mode", "test_gan_losses"),
    ),
    Planted(
        "a marked tensor may not even be added",
        "",
        "if x.is_inference() and any(saved is x.data for saved in ctx.saved_tensors):",
        "if x.is_inference():",
        ("test_inference_mode",),
    ),
    Planted(
        "the sample reaches the generator",
        "",
        "made = generator(noise).detach()",
        "made = generator(noise)",
        ("test_gan_losses",),
    ),
    Planted(
        "the score of the sample is detached",
        "",
        "(discriminator(made) ** 2).mean()",
        "(discriminator(made).detach() ** 2).mean()",
        ("test_gan_losses",),
    ),
    Planted(
        "the loss of the real samples is a number",
        "",
        "((discriminator(real) - 1) ** 2).mean() +",
        "((discriminator(real) - 1) ** 2).mean().item() +",
        ("test_gan_losses",),
    ),
    Planted(
        "the labels are swapped",
        "",
        "((discriminator(real) - 1) ** 2).mean() + (discriminator(made) ** 2).mean()",
        "(discriminator(real) ** 2).mean() + ((discriminator(made) - 1) ** 2).mean()",
        ("test_gan_losses",),
    ),
    Planted(
        "the loss of the discriminator is not returned",
        "",
        "    return ((discriminator(real) - 1) ** 2).mean()",
        "    ((discriminator(real) - 1) ** 2).mean()",
        ("test_gan_losses",),
    ),
    Planted(
        "the real samples have no mean",
        "",
        "    return ((discriminator(real) - 1) ** 2).mean()",
        "    return ((discriminator(real) - 1) ** 2)",
        ("test_gan_losses",),
    ),
    Planted(
        "the verdict is detached",
        "",
        "    return ((discriminator(generator(noise)) - 1) ** 2).mean()",
        "    return ((discriminator(generator(noise)).detach() - 1) ** 2).mean()",
        ("test_gan_losses",),
    ),
    Planted(
        "the generator's sample is detached",
        "",
        "    return ((discriminator(generator(noise)) - 1) ** 2).mean()",
        "    return ((discriminator(generator(noise).detach()) - 1) ** 2).mean()",
        ("test_gan_losses",),
    ),
    Planted(
        "the generator wants to be found out",
        "",
        "    return ((discriminator(generator(noise)) - 1) ** 2).mean()",
        "    return (discriminator(generator(noise)) ** 2).mean()",
        ("test_gan_losses",),
    ),
]


class TestLesson(LessonTests):
    lesson = LESSON
    planted = PLANTED
    test_cells = 6
    visible = True
    examples = 15


OWN_CALL = """        @functools.wraps(function)
        def call(*arguments, **named):
            with inference_mode(self.mode):
                return function(*arguments, **named)

        return call
"""


def test_the_decorator_of_exercise_3_also_serves_inference_mode() -> None:
    again = Planted("uses exercise 3", "", OWN_CALL, "        return decorated(self, function)\n", ())
    assert not marks(LESSON, again).lost


@pytest.fixture(params=["", *styles(LESSON)], ids=lambda style: style or "solution")
def engine(request: pytest.FixtureRequest) -> dict[str, Any]:
    return solved(LESSON, request.param)


def test_each_thread_has_its_own_switch(engine: dict[str, Any]) -> None:
    inside, done = threading.Event(), threading.Event()
    answers = []

    def other() -> None:
        with engine["no_grad"]():
            inside.set()
            done.wait(10)
            answers.append(engine["is_grad_enabled"]())

    thread = threading.Thread(target=other)
    thread.start()
    assert inside.wait(10)
    answers.append(engine["is_grad_enabled"]())
    with engine["enable_grad"]():
        done.set()
        thread.join()
    assert answers == [True, False]


def test_modes_nest_in_any_mix(engine: dict[str, Any]) -> None:
    on, off, inference = engine["enable_grad"], engine["no_grad"], engine["inference_mode"]

    def state() -> tuple[bool, bool]:
        return engine["is_grad_enabled"](), engine["is_inference_mode_enabled"]()

    seen = [state()]
    with off():
        with inference():
            with on():
                seen.append(state())
            with inference(False):
                seen.append(state())
            seen.append(state())
        seen.append(state())
    seen.append(state())
    assert seen == [(True, False), (True, True), (True, False), (False, True), (False, False), (True, False)]


def test_nothing_stays_alive_without_recording(engine: dict[str, Any]) -> None:
    tensor = engine["MiniTensor"]
    w = tensor(np.ones((3, 3)), requires_grad=True)
    with engine["no_grad"]():
        y = (w @ w).tanh().sum()
    assert y.grad_fn is None
    assert w._accumulate is None
    y = (w @ w).tanh().sum()
    with engine["no_grad"]():
        y.backward()
    np.testing.assert_allclose(w.grad.data, np.full((3, 3), 6 * (1 - np.tanh(3.0) ** 2)))
