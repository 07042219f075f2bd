"""Mirrors what a test and student code share in one notebook, although they run apart here: random seeds and files."""

from __future__ import annotations

import ast
import contextlib
import functools
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.random  # NumPy itself loads it only when it is used

from autograder.judge.outside.guard import within_reach
from autograder.judge.outside.namespace import modules_in
from autograder.notebooks.magics import plain_python
from autograder.sandbox.files import ChangedFiles, KnownFiles
from autograder.sandbox.process.limits import SandboxError
from autograder.sandbox.sandbox import Sandbox

# Names of functions and modules for files, except PyTorch's that mean something else.
FILE_NAMES = re.compile(
    r"open|Path|os|pathlib|exists|isfile|csv|glob|shutil|genfromtxt|fromfile|\w+_file|read_\w+|write\w*"
    r"|load(?!er|_state_dict)\w*|save(?!d|_for_backward)\w*"
)
NAME_OF_A_FILE = re.compile(r"\S*\w\.[A-Za-z]\w*|\S*/\S*")
MOST_BYTES, MOST_FILES = 32 << 20, 2_000


@dataclass(frozen=True)
class Generator:
    """A library's own random generator: what seeds it, its state as a plain value, and what restores that."""

    module: str
    seed: str
    state: Callable[[Any], Any]
    restore: str


GENERATORS = (
    Generator("random", "seed", lambda random: random.getstate(), "setstate({!r})"),
    Generator("numpy.random", "seed", lambda random: _numpy_state(random), "set_state({!r})"),
    Generator(
        "torch",
        "manual_seed",
        lambda torch: torch.get_rng_state().numpy().tobytes(),
        "set_rng_state(_g.frombuffer(bytearray({!r}), dtype=_g.uint8))",
    ),
)


@contextlib.contextmanager
def seeds(sandbox: Sandbox) -> Iterator[None]:
    """While inside, seeding a generator on this side also seeds the one in the sandbox. Before each question, that one
    catches up with what a test has drawn since: a notebook has one generator.
    """
    loaded = {generator: sys.modules[generator.module] for generator in GENERATORS if generator.module in sys.modules}
    known: dict[Generator, Any] = {}

    def tell(generator: Generator) -> None:
        state = known[generator] = generator.state(loaded[generator])
        sandbox.execute(f"import {generator.module} as _g; _g.{generator.restore.format(state)}; del _g")

    def catch_up() -> None:
        for generator, told in known.items():
            if told != generator.state(loaded[generator]):
                tell(generator)

    def seeding(generator: Generator, seed: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(seed)
        def seeded(*args: Any, **options: Any) -> Any:
            found = seed(*args, **options)
            tell(generator)
            return found

        return seeded

    before = {generator: getattr(module, generator.seed) for generator, module in loaded.items()}
    for generator, seed in before.items():
        setattr(loaded[generator], generator.seed, seeding(generator, seed))
    sandbox.before_question = catch_up
    try:
        yield
    finally:
        for generator, seed in before.items():
            setattr(loaded[generator], generator.seed, seed)
        sandbox.before_question = None


def _numpy_state(random: Any) -> tuple[Any, ...]:
    """The state of NumPy's global generator, in plain values."""
    name, keys, *rest = random.get_state()
    return name, np.asarray(keys).tolist(), *rest


class Files:
    """A folder that mirrors the notebook's working directory while a test runs that reads or writes files, itself or
    through a module in the folder `helpers`.

    Changes in the sandbox arrive with each answer of the student's code; changes here are sent before each question.
    Close it when the notebook is done.
    """

    def __init__(self, sandbox: Sandbox, helpers: Path | None = None):
        self.sandbox = sandbox
        self.helpers_touch = any(touches_files(path.read_text("utf-8", "replace")) for path in modules_in(helpers))
        self.folder = Path(tempfile.mkdtemp(prefix="judge-"))
        self.there: dict[str, Any] = {}
        self.here: dict[str, tuple[int, int]] = {}
        self.generation = sandbox.generation

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    @contextlib.contextmanager
    def shared(self, source: str) -> Iterator[None]:
        """While inside, the working directory is the mirror, if the test's source looks as if it used files."""
        if not (self.helpers_touch or touches_files(source)):
            yield
            return
        before = os.getcwd()
        os.chdir(self.folder)
        try:
            self.fetch()
            self.sandbox.mirror = self
            with within_reach(self.folder):
                yield
        finally:
            self.sandbox.mirror = None
            os.chdir(before)

    def fetch(self) -> None:
        """Fetch the files that have changed in the sandbox."""
        with contextlib.suppress(SandboxError):
            self.take(self.sandbox.changed_files(self.known()))

    def known(self) -> KnownFiles:
        """Which of the sandbox's files are here, and how many bytes of others there is room for."""
        if self.generation != self.sandbox.generation:
            self.generation, self.there = self.sandbox.generation, {}
        return {"known": self.there, "room": MOST_BYTES}

    def take(self, changed: ChangedFiles) -> None:
        """Apply the changes from the sandbox."""
        with contextlib.suppress(OSError):
            for name, (state, content) in changed.found.items():
                path = self.folder / name
                if not self._has_room(name, len(content)):
                    continue
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
                self.there[name] = state
                self.here[name] = _state(path)
            for name in changed.gone:
                self.there.pop(name, None)
                self.here.pop(name, None)
                (self.folder / name).unlink(missing_ok=True)

    def _has_room(self, name: str, size: int) -> bool:
        """Whether the mirror may take this file too: the sandbox may ignore the bounds."""
        others = sum(there for other, (there, _) in self.here.items() if other != name)
        return others + size <= MOST_BYTES and (name in self.here or len(self.here) < MOST_FILES)

    def send(self) -> None:
        """Send what the test has written or removed."""
        found = dict(_files_below(str(self.folder)))
        changed = [name for name, state in found.items() if state != self.here.get(name)]
        removed = [name for name in self.here if name not in found]
        if changed or removed:
            self.sandbox.write_files({name: (self.folder / name).read_bytes() for name in changed}, removed)
            self.here.update((name, _state(self.folder / name)) for name in changed)
            for name in removed:
                del self.here[name]


def _files_below(folder: str, prefix: str = "") -> Iterator[tuple[str, tuple[int, int]]]:
    """The name and state of each file below a folder. Runs before each question; pathlib takes three to five times as
    long.
    """
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_file():
                status = entry.stat()
                yield prefix + entry.name, (status.st_size, status.st_mtime_ns)
            elif entry.is_dir(follow_symlinks=False):
                yield from _files_below(entry.path, f"{prefix}{entry.name}/")


@functools.lru_cache(maxsize=512)
def touches_files(source: str) -> bool:
    """Whether a test names something that reads or writes files, or has a string that may be the name of one. Sentences
    do not count: looking for changed files takes a fifth of the time of every question.
    """
    try:
        nodes = ast.walk(ast.parse(plain_python(source)[0]))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False  # it will not run
    return any(map(_touches_files, nodes))


def _touches_files(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and bool(NAME_OF_A_FILE.fullmatch(node.value))
    named = (getattr(node, field, None) for field in ("id", "attr", "name", "module"))
    return any(FILE_NAMES.fullmatch(part) for name in named if isinstance(name, str) for part in name.split("."))


def _state(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns
