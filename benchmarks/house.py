"""`python -m benchmarks.house`: how large each room is, and how far one call walks through the house.

The first table counts files and lines. `--picture` prints the rooms and their imports as a diagram for a Markdown page.
The second table follows walks with a profiler: a check that shows a diagnosis, one of a right engine, a submission that
is graded, a lesson from its text to the release, and a product with its backward pass. It counts the files and
functions that ran, the calls, and the hand-overs: calls from one package of `autograder` to another, and from one of
its files to another. Each walk has its own process. The checks and the product are counted the second time, so they are
warm; the other two are counted the first time, with all that they import, except what the command imports at its start.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any
from unittest.mock import patch

import grimp

ROOT = Path(__file__).resolve().parent.parent
LESSON = ROOT / "course" / "lessons" / "02_scalar_engine" / "02_scalar_engine.py"
PACKAGES = ("autograder", "mini_autograd")
Place = tuple[str, str]
CODE = (".py", ".js", ".css", ".j2")


@dataclass
class Walk:
    """What ran during one walk. A hand-over is counted by the package it comes from and the one it goes to."""

    files: set[str] = field(default_factory=set)
    functions: set[CodeType] = field(default_factory=set)
    calls: int = 0
    between_files: int = 0
    hand_overs: Counter[tuple[str, str]] = field(default_factory=Counter)
    places: dict[CodeType, Place | None] = field(default_factory=dict)

    def called(self, frame: FrameType) -> None:
        """Count a call, if it is one of ours. A module that is imported counts as a file."""
        callee = self._place(frame)
        if callee is None:
            return
        self.files.add(frame.f_code.co_filename)
        if frame.f_code.co_name == "<module>":
            return
        self.calls += 1
        self.functions.add(frame.f_code)
        caller = self._caller(frame)
        if callee[0] != "autograder" or caller is None or (place := self._place(caller)) is None:
            return
        if place[0] == "autograder" and caller.f_code.co_filename != frame.f_code.co_filename:
            self.between_files += 1
            if callee[1] != place[1]:
                self.hand_overs[place[1], callee[1]] += 1

    def _place(self, frame: FrameType) -> Place | None:
        """Project package and room of the code that runs in a frame; None for code that is not ours, or that Python has
        generated, as for a dataclass.
        """
        code = frame.f_code
        if code not in self.places:
            package, _, rest = frame.f_globals.get("__name__", "").partition(".")
            ours = package in PACKAGES and code.co_filename != "<string>"
            self.places[code] = (package, rest.partition(".")[0]) if ours else None
        return self.places[code]

    def _caller(self, frame: FrameType) -> FrameType | None:
        """The nearest caller of a frame that is our code, or None."""
        below = frame.f_back
        while below is not None and self._place(below) is None:
            below = below.f_back
        return below

    def figures(self) -> dict[str, int]:
        """The numbers of the table."""
        overs = sum(self.hand_overs.values())
        counted = {"files": len(self.files), "functions": len(self.functions), "calls": self.calls}
        return {**counted, "hand-overs": overs, "between files": self.between_files}


@contextmanager
def walking(walk: Walk) -> Iterator[None]:
    """Count everything that is called inside, in this thread and in threads that are started meanwhile."""

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            walk.called(frame)

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


class MiniTensor:
    """A student's engine with one classic mistake: the operands of a product are swapped."""

    swapped = True

    def __init__(self, data: float, inputs: tuple[MiniTensor, ...] = (), slopes: tuple[float, ...] = ()):
        self.data, self.grad, self.inputs, self.slopes = data, 0.0, inputs, slopes

    def __add__(self, other: MiniTensor) -> MiniTensor:
        return type(self)(self.data + other.data, (self, other), (1.0, 1.0))

    def __mul__(self, other: MiniTensor) -> MiniTensor:
        slopes = (self.data, other.data) if self.swapped else (other.data, self.data)
        return type(self)(self.data * other.data, (self, other), slopes)

    def backward(self, gradient: float = 1.0) -> None:
        self.grad += gradient
        for tensor, slope in zip(self.inputs, self.slopes, strict=True):
            tensor.backward(gradient * slope)


class RightTensor(MiniTensor):
    """The same engine without that mistake."""

    swapped = False


def check(walk: Walk, engine: type[MiniTensor] = MiniTensor) -> None:
    """A check of gradients; with the first engine, a card with a diagnosis."""
    from autograder.student import between, check_gradients

    expressions = {"a + b": lambda a, b: a + b, "a * b": lambda a, b: a * b}
    for counted in (Walk(), walk):
        with walking(counted):
            check_gradients(expressions, [between(-3.0, 3.0), between(-3.0, 3.0)], engine=engine, points=2)


def product(walk: Walk) -> None:
    """`a * b` and its backward pass."""
    import mini_autograd as ma

    for counted in (Walk(), walk):
        a, b = (ma.tensor(2.0, requires_grad=True) for _ in range(2))
        with walking(counted):
            (a * b).backward()


def lesson(walk: Walk) -> None:
    """From the text of a lesson to the release that students get."""
    from autograder.grading.pretend_class.pretend_course import make_course

    with tempfile.TemporaryDirectory() as folder, walking(walk):
        make_course(Path(folder) / "course", LESSON)


def grade(walk: Walk) -> None:
    """`autograder grade` with the worker and the judge in this process, on an assignment whose solution was tried."""
    from autograder.grading import run
    from autograder.grading.submission import usual_steps
    from autograder.grading.workers import local
    from autograder.judge.judge import judge_notebook

    def judge_here(notebook: Any, source: Any, secret: bytes, unsafe: bool, **options: Any) -> Any:
        return judge_notebook(notebook, source=source.notebook, **options)

    with tempfile.TemporaryDirectory() as folder:
        course = Path(folder) / "course"
        subprocess.run([sys.executable, "-m", "benchmarks.house", "--class-of-one", str(course)], cwd=ROOT, check=True)
        with (
            patch.object(run, "WorkerPool", InProcess),
            patch.object(local, "kept_trials", lambda *_: {}),
            patch.object(usual_steps, "judge_apart", judge_here),
            walking(walk),
        ):
            (record,) = run.grade_class(run.Request(LESSON.stem, course))
    assert record.status == "graded", record


class InProcess:
    """Grades one submission after another, in this process."""

    def __init__(self, work: Callable[[Any], Any], workers: int, prepare: Callable[..., None], told: Any, preload: Any):
        prepare(*told)
        self.work = work

    def run(self, tasks: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        """Each task with its result."""
        for task in tasks:
            yield task, self.work(task)


def make_class_of_one(course: Path) -> None:
    """A course whose only student hands in the solution."""
    from autograder.grading.pretend_class.pretend_course import make_course

    notebook = make_course(course, LESSON)
    submitted = course / "submitted" / "ada" / LESSON.stem
    submitted.mkdir(parents=True)
    shutil.copy(notebook, submitted)


WALKS: dict[str, tuple[str, Callable[[Walk], None]]] = {
    "check": ("a check with a diagnosis", check),
    "right": ("a check of a right engine", partial(check, engine=RightTensor)),
    "grade": ("a graded submission", grade),
    "lesson": ("a lesson, from text to release", lesson),
    "product": ("`a * b` with backward", product),
}


def take(name: str) -> dict[str, Any]:
    """The figures of one walk, taken in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.house", "--walk", name]
    printed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return json.loads(printed.splitlines()[-1])


def lines_per_room() -> dict[str, tuple[int, int]]:
    """Room -> files and lines of code that git tracks; tests and lessons have rooms too."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    found: dict[str, tuple[int, int]] = {}
    for name in listed.splitlines():
        path = ROOT / name
        if path.suffix in CODE and path.is_file():
            room = "/".join(Path(name).parts[:-1][:2]) or "."
            files, lines = found.get(room, (0, 0))
            found[room] = files + 1, lines + len(path.read_text(encoding="utf-8").splitlines())
    return dict(sorted(found.items()))


def print_rooms() -> None:
    """Files and lines of every room, and the sums of the top folders."""
    rooms = lines_per_room()
    print("| room | files | lines |\n| --- | ---: | ---: |")
    for top in dict.fromkeys(room.partition("/")[0] for room in rooms):
        inside = [rooms[room] for room in rooms if room.partition("/")[0] == top]
        print(f"| **{top}** | {sum(files for files, _ in inside)} | {sum(lines for _, lines in inside)} |")
        for room in (room for room in rooms if room.startswith(f"{top}/")):
            print(f"| {room} | {rooms[room][0]} | {rooms[room][1]} |")


def print_walks() -> None:
    """The walks, and between which packages most calls are handed over."""
    print("| walk | files | functions | calls | hand-overs | between files | most of them |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | --- |")
    for name, (title, _) in WALKS.items():
        taken = take(name)
        print(f"| {title} | " + " | ".join(f"{number:,}" for number in taken["figures"].values()), end=" | ")
        print(", ".join(f"{start} to {end} {count}" for (start, end), count in taken["most"]) + " |")


def picture() -> str:
    """The rooms and what they import, in Mermaid: an arrow is left out where a longer path says the same."""
    lines = ["flowchart TD"]
    graph = grimp.build_graph(*PACKAGES)
    for package in PACKAGES:
        rooms = sorted(graph.find_children(package))
        arrows = {room: {other for other in rooms if other != room and _imports(graph, room, other)} for room in rooms}
        lines.append(f"    subgraph {package}")
        shown = [room for room in rooms if arrows[room] or any(room in others for others in arrows.values())]
        lines += [f"        {room}[{room.rpartition('.')[2]}]" for room in shown]
        lines += [f"        {room} --> {other}" for room in rooms for other in sorted(_nearest(arrows, room))]
        lines.append("    end")
    return "\n".join([*lines, f"    {PACKAGES[0]} --> {PACKAGES[1]}"])


def _imports(graph: grimp.ImportGraph, room: str, other: str) -> bool:
    return graph.direct_import_exists(importer=room, imported=other, as_packages=True)


def _nearest(arrows: dict[str, set[str]], room: str) -> set[str]:
    """The rooms that a room imports and cannot reach through another one."""
    return {other for other in arrows[room] if not any(other in _reached(arrows, by) for by in arrows[room] - {other})}


def _reached(arrows: dict[str, set[str]], room: str) -> set[str]:
    found: set[str] = set()
    todo = [room]
    while todo:
        new = arrows[todo.pop()] - found
        found |= new
        todo += new
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.house", description=__doc__)
    parser.add_argument("--walk", choices=WALKS, help="take this walk in this process and print its figures as JSON")
    parser.add_argument("--class-of-one", type=Path, metavar="FOLDER", help=argparse.SUPPRESS)
    parser.add_argument("--picture", action="store_true", help="print the rooms and their imports, and nothing else")
    arguments = parser.parse_args()
    if arguments.class_of_one:
        make_class_of_one(arguments.class_of_one)
    elif arguments.picture:
        print(picture())
    elif arguments.walk:
        walk = Walk()
        WALKS[arguments.walk][1](walk)
        print(json.dumps({"figures": walk.figures(), "most": walk.hand_overs.most_common(4)}))
    else:
        print_rooms()
        print()
        print_walks()


if __name__ == "__main__":
    main()
