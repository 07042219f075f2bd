"""Do the cards of checks look as they should in JupyterLab, in both themes: readable, complete, nothing cut off?"""

from pathlib import Path

import pytest

from autograder.student import check_gradients
from tests.autograder import student_engines as students
from tests.browser.conftest import violations

pytestmark = pytest.mark.browser
PROJECT = Path(__file__).parents[2]

SETUP = f"""
import sys, numpy as np
from autograder.student import check_gradients, quiz
from autograder.runs.context import check_context
from autograder.quizzes.sealing import Answer, seal_quiz
sys.path.insert(0, {str(PROJECT)!r})
from tests.autograder import student_engines as students
def check(expression, inputs, engine, **more):
    return check_gradients(expression, inputs, engine=engine, points=2, **more)
"""

CARDS = {
    "right": """check({"a * b": lambda a, b: a * b, "(a + b).tanh()": lambda a, b: (a + b).tanh()},
                [(), ()], students.closures())""",
    "known bug": """check({"a + b": lambda a, b: a + b, "a * b + a": lambda a, b: a * b + a},
                [(), ()], students.closures(("operands_swapped", "*")))""",
    "unknown bug": """
class Odd(students.closures()):
    def tanh(self):
        return self._unary("tanh", np.tanh, lambda a, out: 0.9 - out * out)
check(lambda a, b: ((a * b).tanh() * a + b - a / b).tanh() * 0.5, [(), ()], Odd)""",
    "arrays": """
class OddArrays(students.arrays()):
    def __matmul__(self, other):
        out = super().__matmul__(other)
        right = out.rule
        out.rule = lambda g: (right(g)[0] * np.linspace(0.4, 1.9, self.data.size).reshape(self.data.shape).round(1),
                              np.where(np.arange(4) == 2, -1, 1) * right(g)[1])
        return out
check(lambda a, b: a @ b, [(3, 5), (5, 4)], OddArrays)""",
    "shape": 'check(lambda a, b: a * b, [(3, 4), (4,)], students.arrays(("broadcast_not_summed", "all")))',
    "large": """
class OddSum(students.arrays()):
    def __mul__(self, other):
        out = super().__mul__(other)
        right = out.rule
        wave = np.sin(np.add.outer(np.arange(40), np.arange(60)) / 7).round(1)
        out.rule = lambda g: (right(g)[0] * (1 + wave), right(g)[1])
        return out
check(lambda a, b: a * b, [(40, 60), (40, 60)], OddSum)""",
    "hidden": """
with check_context(3, graded=True, hidden=True):
    credit = check(lambda a, b: ((a * b).tanh() * a + b - a / b).tanh() * 0.5, [(), ()], Odd)
credit""",
    "error": """
class Broken(students.closures()):
    def __mul__(self, other):
        return self._binary(other, "*", lambda a, b: a * b, lambda a, b: {}[b], lambda a, b: a)
check(lambda a, b: (a * b).tanh(), [(), ()], Broken)""",
    "quiz": """
quiz({"sum_rule": "a", "power_rule": ""}, seal_quiz({
    "sum_rule": {"a": Answer(False, "It is not *split*: each input gets all of it.", "split", "It is split."),
                 "b": Answer(True, "The slope of `a + b` in `a` is 1.", "", "Each gets all of it.")},
    "power_rule": {"a": Answer(True, "Right.", "", "3 * x**2"), "b": Answer(False, "No.", "", "3 * x**3")},
}), points=2)""",
}

HINTS = {
    "The idea behind it": "This mistake often comes from a wrong belief",
    "Where to look": "Look at the backward rule of",
    "Likely bug": "the two operands are swapped",
}

# Per card: its size, the lowest contrast of a text with its background, and whether anything is wider than the card.
MEASURE = """() => {
    const numbers = color => (color.match(/[\\d.]+/g) || []).map(Number);
    const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
    const over = (colors) => {
        canvas.clearRect(0, 0, 1, 1);
        for (const color of colors) { canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1); }
        return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    const light = rgb => rgb.map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    const backdrop = element => {
        const found = [];
        for (let e = element; e; e = e.parentElement) found.unshift(getComputedStyle(e).backgroundColor);
        return ['white', ...found];
    };
    const seen = element => {
        let [r, g, b, alpha = 1] = numbers(getComputedStyle(element)[element.tagName === 'text' ? 'fill' : 'color']);
        for (let e = element; e; e = e.parentElement) alpha *= Number(getComputedStyle(e).opacity);
        return `rgba(${r}, ${g}, ${b}, ${alpha})`;
    };
    const contrast = element => {
        const behind = backdrop(element);
        if (element.tagName === 'text') {
            const cell = element.previousElementSibling;
            const [r, g, b] = numbers(getComputedStyle(cell).fill);
            behind.push(`rgba(${r}, ${g}, ${b}, ${cell.getAttribute('fill-opacity')})`);
        }
        const [a, b] = [light(over(behind)), light(over([...behind, seen(element)]))];
        return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    };
    return [...document.querySelectorAll('.autograder-card')].map(card => {
        const written = [...card.querySelectorAll('*')].filter(element => element.getClientRects().length
            && [...element.childNodes].some(child => child.nodeType === 3 && child.textContent.trim()));
        const worst = written.map(e => [contrast(e), e.textContent.slice(0, 40)]).sort((a, b) => a[0] - b[0])[0];
        return {width: card.clientWidth, height: card.clientHeight, overflow: card.scrollWidth > card.clientWidth,
                contrast: worst[0], text: worst[1]};
    });
}"""


def test_cards_are_readable_in_both_themes(lab):
    path = lab.write_notebook("cards.ipynb", [SETUP, *CARDS.values()])
    lab.open_notebook(path)
    lab.run_all()
    assert lab.errors() == []
    lab.page.set_viewport_size({"width": 1100, "height": 1000})
    card = lab.page.locator(".autograder-card").nth(list(CARDS).index("known bug"))
    assert card.get_by_text("Which of the two inputs appears in it?").is_visible(), "a question comes first"
    for label, revealed in HINTS.items():
        assert not card.get_by_text(revealed).is_visible(), "more is shown before anybody asked"
        card.get_by_text(label, exact=True).click()
        card.get_by_text(revealed).wait_for()
    for theme in ("JupyterLab Light", "JupyterLab Dark"):
        lab.use_theme(theme)
        lab.wait_until(f"() => document.querySelectorAll('.autograder-card').length === {len(CARDS)}")
        lab.page.evaluate(
            "() => document.querySelectorAll('.autograder-card details').forEach(d => { d.open = true; })"
        )
        assert violations(lab.page, ".autograder-card") == []
        for name, card in zip(CARDS, lab.page.evaluate(MEASURE), strict=True):
            assert not card["overflow"], f"{theme}: {name} is wider than its card"
            assert card["contrast"] >= 4.5, (
                f"{theme}: {name}: {card['text']!r} has a contrast of {card['contrast']:.1f}"
            )
            assert card["height"] > 40


@pytest.mark.parametrize("page_colors", ["background: #1e1e1e; color: #d4d4d4", "background: white; color: #222"])
def test_cards_are_readable_without_the_colors_of_jupyter(chromium, page_colors):
    """In a saved page, and in other editors of notebooks."""
    engines = (students.closures(), students.closures(("operands_swapped", "*")))
    checks = [check_gradients(lambda a, b: a * b, [(), ()], engine=engine, points=2) for engine in engines]
    cards = "".join(credit.reports[0].html() for credit in checks)
    page = chromium.new_page()
    page.set_content(f"<body style='{page_colors}'>{cards}")
    page.evaluate("() => document.querySelectorAll('details').forEach(d => { d.open = true; })")
    for card in page.evaluate(MEASURE):
        assert card["contrast"] >= 4.5, f"{card['text']!r} has a contrast of {card['contrast']:.1f}"
    page.close()


def test_what_is_not_accessible_would_be_found(chromium):
    page = chromium.new_page()
    as_in_jupyterlab = "<body style='overflow: hidden; height: 0'><div id='main' style='overflow: hidden; height: 0'>"
    page.set_content(f"{as_in_jupyterlab}<main class='some'><button></button><p style='color: #ccc'>pale</p></main>")
    assert [rule for rule, _ in violations(page, ".some")] == ["button-name", "color-contrast"]
    page.close()


def test_a_failing_card_opens_the_graph_at_the_wrong_edge(lab):
    lab.open_notebook(lab.write_notebook("graph.ipynb", [SETUP, CARDS["known bug"], CARDS["right"]]))
    lab.run_all()
    cell = lab.cell(1)
    button = cell.get_by_role("button", name="Show on the graph: a * b + a")
    button.wait_for()
    explorer = cell.locator(".ma-explorer")
    assert not explorer.is_visible()
    assert button.bounding_box()["y"] > cell.locator(".autograder-card").bounding_box()["y"], "it is below the card"
    button.press("Enter")
    explorer.get_by_text("This is where it goes wrong:").first.wait_for()
    assert explorer.locator(".ma-edge.ma-wrong").count() > 0
    assert violations(lab.page, ".ma-opener") == []
    assert lab.cell(2).get_by_role("button", name="Show on the graph").count() == 0
