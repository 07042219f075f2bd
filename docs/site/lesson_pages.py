"""Notebooks as pages: the released text, with outputs of given cells. Widgets keep what they need to live without
Python.

Nothing of a solution comes here: sources are those of the release, and outputs of solutions, tests, quizzes and hints
are left out.
"""

from __future__ import annotations

import ast
import base64
import itertools
import json
import re
import struct
import sys
from collections.abc import Mapping
from html import escape, unescape
from typing import Any

from nbformat import NotebookNode

from autograder.notebooks.cells import is_code, is_grade, is_solution, is_test, points_of
from autograder.notebooks.magics import plain_python
from mini_autograd import widgets
from mini_autograd.widgets.demo import Demo, as_json
from mini_autograd.widgets.export import STATE, VIEW

NOTE = """```{{note}}
This page shows the lesson as you get it, with the outputs of a finished engine. Checks, quizzes, hints and the sliders
of demos work in the notebook:
<a class="lab" href="../lab/lab/index.html?path={0}/{0}.ipynb">open it in the browser</a>, with nothing to install, or
with `make lab`.{1}
```"""
FURTHER = """ Its part *Further* is
<a class="lab" href="../lab/lab/index.html?path={0}/{0}.ipynb">a notebook of its own</a>."""
ONLY_THERE = {
    "quiz": "Here the notebook asks questions, and explains each answer.",
    "hints": "Here the notebook has hints, from a mild one to one that says nearly everything.",
    "start_lesson": "Here the notebook takes over your engine from the lesson before.",
    "progress": "Here the notebook shows how far you have come, and what comes next.",
}
WITH_TORCH = "A browser has no PyTorch: all else works in a notebook on a computer that has it."
IN_THE_NOTEBOOK = "All else works in the notebook of this lesson."
KEPT_TO_THE_NOTEBOOK = {"own_id", "layout", "tabbable", "tooltip"}
TERMINAL_COLORS = re.compile(r"\x1b\[[0-9;]*m")
KNOWN = {"np", "mini_autograd", *widgets.__all__}
"""What a cell may use to run on its page: lab/demos.js imports it."""
DEMOS = """# Demos

Each demo asks something first: answer it, then step. These are recordings: their numbers were measured or computed when
this page was built, and the numbers of a graph can be dragged. *Start Python here*, below a picture, brings its sliders
and fields to life in the page, and `make demos` opens all demos in a notebook. A demo that uses PyTorch stays a
recording here: a browser has none."""
TITLE = re.compile(r"\A# (.*)$", re.MULTILINE)


def lesson(name: str, released: NotebookNode, ran: NotebookNode, helpers: Mapping[str, str], further: str = "") -> str:
    """The page of a lesson: of its name, its release, a run of the same cells with solutions, and the modules beside
    it. `further`: the name of the notebook of its optional part, if it has one."""
    parts: list[str] = []
    before = ""
    for cell, with_outputs in zip(released.cells, ran.cells, strict=True):
        if not is_code(cell):
            before = cell.source
            parts.append(re.sub("^# ", "## ", cell.source) if parts else cell.source)  # a page has one title
        elif is_test(cell) and "quiz(" not in cell.source:
            words = f"Test, {points_of(cell):g} points"
            parts.append(_folded(words, _code(cell.source)))
        elif _is_for_the_notebook(cell):
            said = [
                f'<p class="in-notebook">{text}</p>' for call, text in ONLY_THERE.items() if f"{call}(" in cell.source
            ]
            parts += map(raw, said) if said else [_folded("Imports", _code(cell.source))]
            beside = (name for name in helpers if f"from {name.removesuffix('.py')} import" in cell.source)
            parts += [_folded(name, _code(helpers[name])) for name in beside]
        elif is_solution(cell) or is_grade(cell):
            parts.append(raw('<p class="yours">Your code</p>') + _code(cell.source))
        else:
            shown = _outputs(with_outputs, ran)
            parts.append(_code(cell.source))
            if shown:
                parts.append(_folded("What it shows", shown) if "predict" in before.lower() else shown)
            before = ""
    note = NOTE.format(name, FURTHER.format(further) if further else "")
    return TITLE.sub(lambda title: f"# {name[:2]}. {title[1]}\n\n{note}", "\n\n".join(parts)) + "\n"


def recorded(ran: NotebookNode) -> str:
    """What given cells put out, for where they cannot run: source -> outputs, each by its forms, in JSON."""
    shown = {}
    for cell in filter(is_code, ran.cells):
        if not (is_test(cell) or is_solution(cell) or is_grade(cell) or _is_for_the_notebook(cell)):
            shown[cell.source] = list(filter(None, map(_forms, cell.outputs)))
    return json.dumps({source: outputs for source, outputs in shown.items() if outputs})


def _is_for_the_notebook(cell: NotebookNode) -> bool:
    """Whether a page leaves out what a cell shows: it imports something, or asks and tells a learner something."""
    return cell.metadata.get("jupyter", {}).get("source_hidden", False) or "progress(" in cell.source


def _forms(output: NotebookNode) -> dict[str, str]:
    """An output without what a widget needs to live; nothing of a widget without a picture, which asks something."""
    data = output.get("data", {})
    if VIEW in data and not _picture(data):
        return {}
    text = output.get("text") or f"{output.get('ename')}: {output.get('evalue')}"
    return {kind: form for kind, form in (data or {"text/plain": text}).items() if kind != VIEW}


def demo_pages(ran: NotebookNode, lessons: Mapping[str, list[str]]) -> dict[str, str]:
    """The page of each demo of the gallery by its name, without code, and of the gallery itself, which leads to them.
    What a text says of demos with Python is shown once they have it. `lessons`: those that show a demo, by its title.
    """
    pages, entries = {}, [DEMOS]
    for text, code in _parts(ran):
        heading, words = text.source.split("\n\n", 1)
        title = heading.removeprefix("## ")
        name = page_name(title)
        links = " and ".join(f"[lesson {stem[:2]}](../lessons/{stem}.md)" for stem in lessons.get(title, []))
        shown = f"Shown in {links}. " if links else ""
        pages[name] = "\n\n".join([f"# {title}", words, _outputs(code, ran), f"{shown}[All demos](../gallery.md)"])
        picture = _sized(f"_static/{name}.svg", "", _still(code))
        entries.append(f"## [{title}](demos/{name}.md)\n\n{raw(f'<div class=still>{picture}</div>')}\n{words}")
    hidden = "\n".join(["```{toctree}", ":hidden:", "", *(f"demos/{name}" for name in pages), "```"])
    return {f"demos/{name}": f"{page}\n" for name, page in pages.items()} | {
        "gallery": "\n\n".join([*entries, hidden]) + "\n"
    }


def stills(ran: NotebookNode) -> dict[str, str]:
    """The picture of each demo of the gallery, by the name of its page."""
    return {page_name(text.source.split("\n\n")[0]): _still(code) for text, code in _parts(ran)}


def page_name(title: str) -> str:
    """The name of the page of a demo."""
    return re.sub(r"\W+", "_", title.lower()).strip("_")


def _parts(ran: NotebookNode) -> list[tuple[NotebookNode, NotebookNode]]:
    """The demos of the gallery: a text that begins with a heading, and the code that shows it."""
    return list(zip(ran.cells[2::2], ran.cells[3::2], strict=True))


def _still(code: NotebookNode) -> str:
    return next(output.data["image/svg+xml"] for output in code.outputs if "image/svg+xml" in output.get("data", {}))


def first_picture(ran: NotebookNode) -> str:
    """The first widget of a notebook."""
    return next(shown for cell in ran.cells if is_code(cell) and (shown := _outputs(cell, ran)))


def answer_buttons(ran: NotebookNode) -> None:
    """Store in the state of each demo what it shows for each of its buttons, and for the parts of these pictures that
    can be pressed: Python will not be asked for it.

    A setting that asks for what only Python can answer is left out; a demo that begins with one begins elsewhere.
    """
    for name in (name for name in vars(widgets) if hasattr(_module(name), "demo")):
        demo: Demo = _module(name).demo()
        for state in (entry["state"] for entry in _states(ran).values() if entry["state"].get("title") == demo.title):
            if not (answers := _answers(demo, state["state"])):
                state["state"] = state["start"] = demo.checked({**state["state"], **demo.answered})
                answers = _answers(demo, state["state"])
                state["shown"] = answers[0][1]
            presets = [(label, {**state["state"], **preset}) for label, preset in state["presets"]]
            found = [(label, setting, _answers(demo, setting)) for label, setting in presets]
            state["presets"] = [[label, setting] for label, setting, more in found if more]
            state["answers"] = [*itertools.chain(answers, *(more for _, _, more in found))]


def _answers(demo: Demo, setting: Mapping[str, Any]) -> list[list[Any]]:
    """What a demo shows for a setting, and if it asks for something, for each answer that can be pressed; none if that
    asks again."""
    shown = demo.show(**demo.checked(setting))
    presses = re.findall(r'data-press="([^"]*)"', shown.svg) if shown.asks else []
    pressed = [{**setting, **json.loads(unescape(press))} for press in presses]
    try:
        found = [(state, demo.show(**demo.checked(state))) for state in pressed]
    except ValueError:  # a mistake, which the live demo answers in words
        return []
    if shown.asks and (not found or any(answer.asks for _, answer in found)):
        return []
    return [[state, as_json(answer)] for state, answer in [(setting, shown), *found]]


def _module(name: str) -> Any:
    return sys.modules.get(getattr(getattr(widgets, name), "__module__", ""))


def _states(ran: NotebookNode) -> dict[str, Any]:
    found: dict[str, Any] = ran.metadata.get("widgets", {}).get(STATE, {}).get("state", {})
    return found


def _outputs(cell: NotebookNode, ran: NotebookNode) -> str:
    return "\n\n".join(filter(None, (_output(output, cell.source, ran) for output in cell.outputs)))


def _output(output: NotebookNode, source: str, ran: NotebookNode) -> str:
    data = output.get("data", {})
    if output.output_type == "stream":
        return _text(output.text)
    if output.output_type == "error":
        return _text(f"{output.ename}: {output.evalue}")
    picture = _picture(data)
    if VIEW in data:
        return raw(live(_states(ran)[data[VIEW]["model_id"]]["state"], picture, source)) if picture else ""
    if "text/html" in data:
        return raw(f'<div class="shown">{data["text/html"]}</div>')
    return raw(picture) if picture else _text(data.get("text/plain", ""))


def _picture(data: dict[str, str]) -> str:
    """The image among the forms of an output, if there is one."""
    words = escape(TERMINAL_COLORS.sub("", data.get("text/plain", "")))
    for kind in ("image/svg+xml", "image/png"):
        if kind in data:
            content = data[kind] if kind == "image/png" else base64.b64encode(data[kind].encode()).decode()
            return _sized(f"data:{kind};base64,{content.strip()}", words, data[kind])
    return ""


def _sized(source: str, words: str, picture: str) -> str:
    """An image whose place is kept until it is loaded: of an SVG, or of a PNG in base64."""
    if box := re.search(r'viewBox="\S+ \S+ ([\d.]+) ([\d.]+)"', picture):
        width, height = (round(float(size)) for size in box.groups())
    else:
        width, height = struct.unpack(">II", base64.b64decode(picture[:64])[16:24])
    return f'<img class="shown" loading="lazy" width="{width}" height="{height}" alt="{words}" src="{source}">'


def live(state: dict[str, Any], still: str, source: str) -> str:
    """A widget with its data, and the source of its cell if Python can run it on the page. static/live.js brings it to
    life, and without scripts the still is there.
    """
    traits = {name: value for name, value in state.items() if name[0] != "_" and name not in KEPT_TO_THE_NOTEBOOK}
    traits["foldable"] = False  # Python folds
    kind = "explorer" if "picture" in traits else "game" if "graphs" in traits else "demo"
    data = json.dumps(traits).replace("</", "<\\/")
    python = f' data-python="{escape(source)}"' if _runs_alone(source) else ""
    python = python or f' data-elsewhere="{WITH_TORCH if "torch" in source else IN_THE_NOTEBOOK}"'
    python = "" if kind == "game" else python  # it needs none
    return f'<div class="live" data-kind="{kind}"{python}><script type="application/json">{data}</script>{still}</div>'


def _runs_alone(source: str) -> bool:
    """Whether a cell needs no other cell: it uses only names that are known, and those that it sets itself."""
    names = [node for node in ast.walk(ast.parse(plain_python(source)[0])) if isinstance(node, ast.Name)]
    set_there = {name.id for name in names if isinstance(name.ctx, ast.Store)}
    return {name.id for name in names} <= KNOWN | set_there


def _code(source: str) -> str:
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", source)), default=0))
    return f"{fence}ipython3\n{source}\n{fence}"


def _text(text: str) -> str:
    return raw(f'<pre class="shown">{escape(TERMINAL_COLORS.sub("", text))}</pre>') if text.strip() else ""


def _folded(words: str, content: str) -> str:
    return raw(f"<details><summary>{words}</summary>") + f"\n\n{content}\n\n" + raw("</details>")


def raw(html: str) -> str:
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", html)), default=0))
    return f"{fence}{{raw}} html\n{html}\n{fence}\n"
