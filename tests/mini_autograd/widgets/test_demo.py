"""What all demos share: whatever a browser sends is answered, with a picture or in words."""

import inspect
import json
import re
import sys
from html import unescape

import pytest

from mini_autograd import widgets
from mini_autograd.widgets.demo import Choice, Demo, Shown, Slider, Switch
from mini_autograd.widgets.scripts import in_words

MODULES = (sys.modules[getattr(widgets, name).__module__] for name in widgets.__all__)
DEMOS: dict[str, Demo] = {
    module.__name__.rpartition(".")[2]: module.demo() for module in MODULES if hasattr(module, "demo")
}


def through_the_browser(value):
    """A value as it comes back from a browser, where 1.0 and 1 are the same number."""
    if isinstance(value, dict):
        return {name: through_the_browser(part) for name, part in value.items()}
    value = json.loads(json.dumps(value))
    return int(value) if isinstance(value, float) and value.is_integer() else value


def settings(demo: Demo):
    """Each value of each control, each button, and each part of the picture that can be pressed, one at a time."""
    for control in demo.controls:
        match control:
            case Choice():
                values = control.options
            case Slider():
                values = control.values
            case Switch():
                values = (True, False)
            case _:
                values = ("", demo.start[control.name], "(2, 3)")
        yield from ({control.name: value} for value in values)
    yield from demo.presets.values()
    pressed = re.findall(r'data-press="([^"]*)"', demo.show(**demo.start).svg)
    yield from (json.loads(unescape(text)) for text in pressed)


@pytest.fixture
def quickly(monkeypatch):
    """Measurements of computing time: one run instead of many."""
    for name, count in (("forward_or_reverse", "RUNS"), ("checkpoint_planner", "REPEATS")):
        monkeypatch.setattr(inspect.getmodule(DEMOS[name].show), count, 3)


def test_every_demo_is_here():
    assert len(DEMOS) == 10


@pytest.mark.parametrize("name", DEMOS)
def test_every_value_of_every_control_is_answered_as_the_browser_sends_it(name, quickly):
    demo = DEMOS[name]
    widget = demo.live()
    for setting in settings(demo):
        before = widget.shown
        widget.state = {"sent": None}  # so that the next state is another one
        widget.state = through_the_browser({**demo.start, **setting})
        shown = widget.shown
        assert shown["serial"] > before["serial"], setting
        typed = {control.name for control in demo.controls if not isinstance(control, Choice | Slider | Switch)}
        assert not shown["wrong"] or set(setting) & typed, (setting, shown["words"])
        assert json.dumps(shown, allow_nan=False), setting


@pytest.mark.parametrize(
    "error", [TypeError("long int != double"), ValueError("three is not a shape"), MemoryError(), KeyboardInterrupt()]
)
def test_every_error_is_answered_in_words(error):
    first, calls = Shown("<svg/>", ("fine",)), []

    def show(x):
        calls.append(x)
        if x:
            raise error
        return first

    widget = Demo("A demo", (Slider("x", "x", (0, 1, 2)),), show, {"x": 0}).live()
    before = widget.shown
    widget.state = {"x": 1}
    assert (widget.shown["words"], widget.shown["wrong"]) == ([in_words(error)], True)
    assert widget.shown["svg"] == before["svg"]
    serial = widget.shown["serial"]
    widget.state = {"x": 2}
    assert widget.shown["serial"] > serial, "the browser waits for a new answer, even if it says the same"
    widget.state = {"x": 0}
    assert (widget.shown["words"], widget.shown["wrong"]) == (["fine"], False)


@pytest.mark.parametrize("name", DEMOS)
def test_where_nothing_answers_nothing_is_asked_or_can_be_pressed(name, quickly):
    demo = DEMOS[name]
    answered = demo.show(**demo.checked({**demo.start, **demo.answered}))
    assert not answered.asks
    assert demo.show(**demo.start).asks == bool(demo.answered)
    assert not re.search("role=.button|data-press|tabindex|Undo|Show me", demo.still(demo.show(**demo.start)).svg)


def test_a_setting_that_no_control_has_is_named():
    demo = DEMOS["activations"]
    with pytest.raises(ValueError, match=r"0\.05 is not a setting of 'x'"):
        demo.checked({**demo.start, "x": 0.05})
    with pytest.raises(ValueError, match="no control 'y'"):
        demo.checked({**demo.start, "y": 1.0})
