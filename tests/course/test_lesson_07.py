"""Plants classic mistakes in the solutions of lesson 07: each costs points where it was made, and on no other cell.

Also tries what the notebook's own checks cannot: threads, and the engine that the next lesson starts from.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from autograder.lessons.mistakes.listed import KnownMistake
from tests.course.planting import LessonTests, marks, solved, styles

LESSON = "07_grad_modes"


class TestLesson(LessonTests):
    lesson = LESSON
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
    again = KnownMistake("uses exercise 3", OWN_CALL, "        return decorated(self, function)\n")
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
