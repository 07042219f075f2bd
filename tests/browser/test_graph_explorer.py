"""The graph explorer in a real JupyterLab: stepped with mouse and keyboard, read from the page, and exported."""

import base64
import re
import subprocess
import sys

import nbformat
import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

ENGINE = """
class MiniTensor:
    def __init__(self, data, inputs=(), operation="", rule=None):
        self.data, self.grad, self.inputs, self.operation, self.rule = data, 0.0, inputs, operation, rule

    def __add__(self, other):
        return MiniTensor(self.data + other.data, (self, other), "+", lambda g: (g, g))

    def __mul__(self, other):
        return MiniTensor(self.data * other.data, (self, other), "*", lambda g: (g * other.data, g * self.data))
"""
STUDENT = (
    "from mini_autograd.widgets import explore\na, b = MiniTensor(2.0), MiniTensor(3.0)\nd = (a + b) * a\nexplore(d)"
)
WRONG = """
class Forgetful(MiniTensor):
    def __add__(self, other):
        return Forgetful(self.data + other.data, (self, other), "+", lambda g: (g, g))

    def __mul__(self, other):
        return Forgetful(self.data * other.data, (self, other), "*", lambda g: (g * other.data, g))

p, q = Forgetful(2.0), Forgetful(3.0)
explore((p + q) * q, {"p": p, "q": q})
"""
PYTORCH = """
import torch
x = torch.tensor(-1.5, requires_grad=True)
y = x**2 + 3 * x
explore(y, {"x": x, "y": y})
"""


LARGE = """
import mini_autograd as ma
from mini_autograd.widgets import explore
net = ma.nn.Sequential(*[layer for _ in range(40) for layer in (ma.nn.Linear(3, 3), ma.nn.Tanh())])
x = ma.ones(2, 3)
hidden = net[:2](x)
hidden.register_hook(print)
loss = net[2:](hidden).sum()
explore(loss)
"""
FREED = "loss.backward()\nexplore(loss, fold=False)"


class Explorer:
    """One explorer in the page and what a reader sees of it, put back to the start."""

    def __init__(self, cell):
        self.root = cell.locator(".ma-explorer")
        self.words = self.root.locator(".ma-words")
        self.counter = self.root.locator(".ma-counter")
        self.nodes = self.root.locator(".ma-node")
        self.root.press("Home")

    def press(self, button):
        self.root.get_by_role("button", name=button, exact=True).click()

    def node(self, start):
        return self.root.locator(f".ma-node[aria-label^='{start}']")

    def number(self, start, row):
        return self.node(start).locator(f".ma-{row}")

    def width(self):
        return self.root.evaluate("root => root.querySelector('svg').getBoundingClientRect().width")


@pytest.fixture(scope="module")
def opened(module_lab):
    module_lab.open_notebook(
        module_lab.write_notebook("explorer.ipynb", [ENGINE, STUDENT, PYTORCH, LARGE, FREED, WRONG])
    )
    module_lab.run_all()
    assert module_lab.errors() == []
    yield module_lab
    assert module_lab.console_errors == []
    assert module_lab.external_requests == []


def test_students_graph_is_stepped_with_the_mouse(opened):
    explorer = Explorer(opened.cell(1))
    expect(explorer.counter).to_have_text("Leaves, step 0 of 6")
    expect(explorer.number("a", "value")).to_have_text("2")
    expect(explorer.number("a", "grad")).to_have_text("")
    explorer.press("Step")
    expect(explorer.words).to_contain_text("v1 = a + b = 2 + 3 = 5")
    for _ in range(3):
        explorer.press("Step")
    expect(explorer.words).to_contain_text("a receives 1 \u00d7 5 = 5, sum so far 5.")
    expect(explorer.number("a", "grad")).to_have_text("5")
    explorer.press("Step")
    expect(explorer.words).to_contain_text("a receives 2 \u00d7 1 = 2, sum so far 7.")
    expect(explorer.number("a", "grad")).to_have_text("7")
    explorer.press("Back")
    expect(explorer.number("a", "grad")).to_have_text("5")
    explorer.press("End")
    expect(explorer.number("a", "grad")).to_have_text("7")
    expect(explorer.number("b", "grad")).to_have_text("2")
    explorer.press("Start")
    expect(explorer.number("a", "grad")).to_have_text("")


def test_pytorch_graph_is_stepped_with_the_keyboard(opened):
    explorer = Explorer(opened.cell(2))
    explorer.root.press("End")
    expect(explorer.number("x", "grad")).to_have_text("0")
    explorer.root.press("ArrowLeft")
    expect(explorer.counter).to_contain_text("Backward")
    explorer.root.press("Home")
    explorer.root.press("ArrowRight")
    expect(explorer.counter).to_have_text("Forward, step 1 of 8")
    expect(explorer.words).to_contain_text("2.25")
    explorer.root.get_by_role("button", name="Step", exact=True).press("ArrowRight")  # a button keeps its arrow keys
    expect(explorer.counter).to_have_text("Forward, step 2 of 8")
    explorer.node("x").press("Enter")
    expect(explorer.words).to_contain_text("x: value -1.5")
    assert opened.page.evaluate("() => window.jupyterapp.shell.currentWidget.content.mode") == "command"


def test_a_click_on_a_node_shows_its_details_and_tells_nothing_early(opened):
    explorer = Explorer(opened.cell(1))
    explorer.node("d").click()
    expect(explorer.words).to_have_text("d = v1 \u00d7 a: not evaluated yet.")
    explorer.press("End")
    explorer.node("d").click()
    expect(explorer.words).to_contain_text("Local derivative with respect to a: 5.")
    explorer.node("d").click()
    expect(explorer.words).to_contain_text("Finished.")


def test_a_click_shows_the_two_factors_on_the_lines(opened):
    explorer = Explorer(opened.cell(1))
    explorer.press("End")
    explorer.node("d").click()
    flows = explorer.root.locator(".ma-flow")
    expect(flows.filter(has_text="1 \u00d7 2")).to_have_count(1)
    expect(flows.filter(has_text="1 \u00d7 5")).to_have_count(1)
    expect(explorer.words).to_contain_text("v1 receives 1 \u00d7 2 = 2.")
    explorer.node("d").press("Escape")
    expect(flows.filter(has_text=re.compile("."))).to_have_count(0)
    expect(explorer.node("a")).to_have_attribute("aria-label", "a, value 2, gradient 7")


def test_what_a_node_receives_is_predicted_compared_and_kept(opened):
    explorer = Explorer(opened.cell(1))
    explorer.press("Predict")
    for _ in range(4):
        explorer.press("Step")
    expect(explorer.counter).to_have_text("Backward, step 3 of 6")  # the gradient has not moved yet
    explorer.root.get_by_label("What does v1 receive?").fill("2")
    explorer.root.get_by_label("What does a receive?").fill("two")
    opened.page.keyboard.press("Enter")
    expect(explorer.words).to_contain_text("two is not a number")
    explorer.root.get_by_label("What does a receive?").fill("2 * (1.5 + 2**-1)")
    opened.page.keyboard.press("Enter")
    expect(explorer.counter).to_have_text("Backward, step 4 of 6")
    reason = "the incoming gradient times the local slope is 1 \u00d7"
    expect(explorer.words).to_contain_text(f"You predicted 2 for v1, and that is right: {reason} 2 = 2.")
    expect(explorer.words).to_contain_text(f"You predicted 2 * (1.5 + 2**-1) for a, but it receives 5: {reason} 5 = 5.")
    opened.page.keyboard.press("ArrowRight")  # Step has the focus
    expect(explorer.words.locator("input")).to_have_count(2)
    opened.page.keyboard.press("Enter")  # nothing entered: skipped
    expect(explorer.counter).to_have_text("Backward, step 5 of 6")
    expect(explorer.words).not_to_contain_text("You predicted")
    explorer.press("Back")
    expect(explorer.words).to_contain_text("You predicted 2 * (1.5")
    opened.save()
    assert '"two"' not in (saved := (opened.root / "explorer.ipynb").read_text(encoding="utf-8"))
    assert re.search(r'"predictions": \{\s*"4": \[\s*"2",\s*"2 \* [^"]+"\s*\]', saved)
    explorer.press("Predict")


def test_predict_answers_at_once_wherever_the_graph_stands(opened):
    explorer = Explorer(opened.cell(1))
    explorer.press("Step")
    explorer.press("Predict")
    expect(explorer.words).to_contain_text("Before each backward step you will be asked")
    explorer.press("Predict")
    expect(explorer.words).to_contain_text("v1 = a + b")
    for _ in range(3):
        explorer.press("Step")
    expect(explorer.counter).to_have_text("Backward, step 4 of 6")
    explorer.press("Predict")
    expect(explorer.root.get_by_label("What does a receive?")).to_be_focused()
    explorer.press("Predict")
    explorer.press("End")
    explorer.press("Predict")
    expect(explorer.words).to_contain_text("Go back to be asked")
    explorer.press("Predict")


def test_a_busy_kernel_does_not_lead_back(opened):
    explorer = Explorer(opened.cell(1))
    kernel = "window.jupyterapp.shell.currentWidget.sessionContext.session.kernel"
    execute = f"code => {kernel}.requestExecute({{ code }}).done"
    opened.page.evaluate(f"code => {{ ({execute})(code); }}", "import time; time.sleep(1)")
    explorer.press("Step")
    explorer.press("Back")
    explorer.press("Predict")  # sent to the kernel with the current step
    explorer.press("Step")
    explorer.press("Step")
    opened.page.evaluate(f"code => ({execute})(code).then(() => null)", "pass")  # the kernel has seen it by now
    opened.page.wait_for_timeout(200)
    expect(explorer.counter).to_have_text("Forward, step 2 of 6")
    explorer.press("Predict")


WATCH = """root => { window.seen = []; new MutationObserver(() => window.seen.push([
    [...root.querySelectorAll(".ma-flow[transform]")].map(label => label.textContent).join(" "),
    root.querySelector(".ma-node[aria-label^='a,'] .ma-grad").textContent,
])).observe(root.querySelector("svg"), { subtree: true, childList: true, attributes: true }); }"""


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_numbers_travel_along_the_edges_and_add_up_unless_readers_want_no_motion(opened, motion):
    opened.page.emulate_media(reduced_motion=motion)
    explorer = Explorer(opened.cell(1))
    for _ in range(4):
        explorer.press("Step")
    expect(explorer.number("a", "grad")).to_have_text("5")
    explorer.root.evaluate(WATCH)
    explorer.press("Step")
    expect(explorer.number("a", "grad")).to_have_text("7")
    seen = opened.page.evaluate("() => window.seen")
    moved = [pair for pair in seen if pair[0]]
    if motion == "reduce":
        assert not moved
    else:
        assert ["2 \u00d7 1 2 \u00d7 1", "5"] in moved  # on the way: the node still has its old number
        assert "5 + 2" in [grad for _, grad in seen]
    expect(explorer.root.locator(".ma-flow[transform]")).to_have_count(0)
    opened.page.emulate_media(reduced_motion="null")


def test_play_runs_to_the_end_and_pause_stops(opened):
    explorer = Explorer(opened.cell(1))
    explorer.press("Play")
    explorer.press("Pause")
    explorer.root.get_by_role("button", name="Play", exact=True).wait_for()
    before = explorer.counter.inner_text()
    opened.page.wait_for_timeout(1300)  # longer than a step is shown
    expect(explorer.counter).to_have_text(before)
    explorer.press("Play")
    expect(explorer.counter).to_contain_text("Finished")
    explorer.root.get_by_role("button", name="Play", exact=True).wait_for()


def test_a_large_graph_is_folded_zoomed_and_saved(opened, tmp_path):
    explorer = Explorer(opened.cell(3))
    expect(explorer.nodes).not_to_have_count(0)
    folded = explorer.nodes.count()
    assert folded < 60
    explorer.press("Blocks")
    expect(explorer.nodes).not_to_have_count(folded)
    assert explorer.nodes.count() > 3 * folded
    expect(explorer.root.locator(".ma-hook")).to_have_count(1)
    before = explorer.width()
    explorer.press("Larger")
    assert explorer.width() == pytest.approx(1.25 * before, rel=0.02)
    explorer.root.press("0")
    explorer.press("Fit")
    assert explorer.width() <= 1400
    explorer.press("Blocks")
    expect(explorer.nodes).to_have_count(folded)
    for kind, start in (("SVG", b"<svg"), ("PNG", b"\x89PNG")):
        with opened.page.expect_download() as download:
            explorer.press(f"Save {kind}")
        download.value.save_as(tmp_path / kind)
        assert (tmp_path / kind).read_bytes().startswith(start)
    assert "var(" not in (tmp_path / "SVG").read_text(encoding="utf-8").partition("ma-node")[2]


def test_a_node_is_found_by_its_name_among_hundreds(opened):
    explorer = Explorer(opened.cell(3))
    explorer.press("Blocks")  # all nodes
    expect(explorer.nodes).to_have_count(162)
    explorer.press("End")
    find = explorer.root.get_by_role("searchbox", name="Find a node")
    find.fill("loss")
    find.press("Enter")
    expect(explorer.root.locator(".ma-node.ma-selected")).to_contain_text("loss")
    place = explorer.root.locator(".ma-node.ma-selected").bounding_box()
    frame = explorer.root.locator(".ma-canvas").bounding_box()
    assert frame["x"] <= place["x"] <= frame["x"] + frame["width"]
    find.fill("v10")
    find.press("Enter")
    first = explorer.root.locator(".ma-node.ma-selected").get_attribute("data-node")
    find.press("Enter")
    assert explorer.root.locator(".ma-node.ma-selected").get_attribute("data-node") != first
    find.fill("no such node")
    find.press("Enter")
    expect(find).to_have_attribute("aria-invalid", "true")
    explorer.press("Blocks")


def test_freed_nodes_are_marked_and_memory_is_shown_on_demand(opened):
    freed = Explorer(opened.cell(4))
    expect(freed.root.locator(".ma-freed").nth(40)).to_be_attached()
    expect(freed.root.locator(".ma-saved").first).to_be_hidden()
    freed.press("Memory")
    expect(freed.root.locator(".ma-saved").first).to_be_visible()


def test_exported_html_shows_the_finished_picture(tmp_path):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in (ENGINE, STUDENT)])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, tmp_path / "explorer.ipynb")
    options = ["--to", "html", "--execute"]
    command = [sys.executable, "-m", "nbconvert", *options, "explorer.ipynb"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    page = (tmp_path / "explorer.html").read_text(encoding="utf-8")
    embedded = re.findall(r"data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)", page)
    pictures = " ".join(base64.b64decode(text).decode() for text in embedded)
    assert ">d = v1 \u00d7 a</text>" in pictures
    assert re.search(r'class="ma-grad"[^>]*>7</text>', pictures)


def test_a_leaf_is_dragged_or_typed_and_everything_is_computed_again_by_the_student_s_engine(opened):
    explorer = Explorer(opened.cell(1))
    explorer.press("End")
    box = explorer.node("a").bounding_box()
    mouse = opened.page.mouse
    mouse.move(box["x"] + 30, box["y"] + 30)
    mouse.down()
    for shift in range(10, 60, 10):
        mouse.move(box["x"] + 30 + shift, box["y"] + 30)
    mouse.up()
    assert opened.page.evaluate("() => getSelection().toString()") == ""
    expect(explorer.number("a", "value")).to_have_text("3")
    expect(explorer.number("d", "value")).to_have_text("18")
    expect(explorer.number("a", "grad")).to_have_text("9")
    expect(explorer.counter).to_contain_text("Finished")  # still at the last step
    explorer.root.get_by_label("b", exact=True).fill("-1.5")
    expect(explorer.number("d", "value")).to_have_text("4.5")
    explorer.press("Back")
    expect(explorer.words).to_contain_text("a receives 3 \u00d7 1 = 3, sum so far 4.5.")
    explorer.root.get_by_label("a", exact=True).fill("2")
    explorer.root.get_by_label("b", exact=True).fill("3")
    expect(explorer.number("d", "value")).to_have_text("10")


KERNEL = "window.jupyterapp.shell.currentWidget.sessionContext.session.kernel"


def test_numbers_are_answered_while_python_is_busy_and_python_has_the_last_word(opened):
    right, wrong = Explorer(opened.cell(1)), Explorer(opened.cell(5))
    for explorer in (right, wrong):
        explorer.press("End")
    opened.page.evaluate(f"() => {{ {KERNEL}.requestExecute({{ code: 'import time; time.sleep(4)' }}); }}")
    wrong.root.get_by_label("q", exact=True).fill("5")  # before the other one waits for Python
    right.root.get_by_label("a", exact=True).fill("4")
    expect(right.number("a", "grad")).to_have_text("11", timeout=1500)
    expect(right.number("d", "value")).to_have_text("28", timeout=100)
    expect(right.words).to_contain_text("Gradients of the leaves: a: 11, b: 4.", timeout=100)
    expect(wrong.number("q", "value")).to_have_text("3", timeout=100)  # no rule of the browser agrees with this engine
    expect(wrong.number("q", "grad")).to_have_text("6", timeout=10_000)  # 5 + 1: the rule of * forgets its factor
    expect(right.root.locator(".ma-busy")).to_have_text("", timeout=10_000)
    opened.save()
    saved = (opened.root / "explorer.ipynb").read_text(encoding="utf-8")
    assert re.search(r'"wanted": \{\s*"expression": "",\s*"values": \{\s*"a": 4\s*\}', saved)
    assert re.search(r'"v": \[\s*4(\.0)?,\s*3(\.0)?,\s*7(\.0)?,\s*28', saved), "the answer of Python"
    right.root.get_by_label("a", exact=True).fill("2")
    wrong.root.get_by_label("q", exact=True).fill("3")
    expect(wrong.number("q", "grad")).to_have_text("4")


def test_a_graph_is_built_from_an_expression_without_code(opened):
    explorer = Explorer(opened.cell(2))
    explorer.press("Expression")
    entry = explorer.root.get_by_role("textbox", name="Expression")
    entry.press("Enter")
    expect(explorer.root.get_by_role("alert")).to_contain_text("Type one such as (a*b + a).tanh().")
    entry.fill("(a*b + a).tanh(")
    entry.press("Enter")
    expect(explorer.root.get_by_role("alert")).to_contain_text("not an expression")
    entry.fill("(a*b + a).tanh()")
    entry.press("Enter")
    expect(explorer.root.get_by_role("alert")).to_be_hidden()
    expect(explorer.counter).to_have_text("Leaves, step 0 of 8")
    explorer.root.get_by_label("a", exact=True).fill("0.5")
    explorer.root.get_by_label("b", exact=True).fill("-0.5")
    explorer.press("End")
    expect(explorer.number("a", "grad")).to_have_text("0.47")
    explorer.root.get_by_label("Examples").select_option("softmax")
    expect(explorer.counter).to_contain_text("Leaves")
    expect(explorer.node("x")).to_contain_text("(3,)")
    explorer.root.get_by_label("Examples").select_option("under no_grad")
    explorer.press("End")
    expect(explorer.node("w")).to_contain_text("-4")
    explorer.press("Expression")
    expect(entry).to_be_hidden()
