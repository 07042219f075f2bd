"""The engine that a lesson starts from: sealed in its call of `start_lesson`, or the student's own in engine.py.

`start_lesson` on a laptop and its stand-in inside the sandbox both use this file, so that both run the same engine.
Standard library only. Sealed only means compressed, so that nobody reads a solution by accident. An engine that a class
holds back has no solutions in it; they come later, in a file of their own.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import linecache
import re
import sys
import zlib
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

LAST: list[SealedEngine] = []  # the engine of the last call, for calls without one
KIND = "engine1."
SEALED_ENGINE = re.compile(r'^start_lesson\("(engine1\.[\w\-=]+)"\)', re.MULTILINE)
"""The call of `start_lesson` in an instructor's notebook."""
FILE = "engine.py"
REFERENCE_FILE = "reference_engine.txt"  # the sealed engine, beside a lesson from which it was held back
FIRST_LINE = "# Your engine after lesson {lesson}, written by start_lesson(). Do not edit it here. {digest}"
FIRST_LINE_READ = re.compile(r"# Your engine after lesson (?P<lesson>\w+), .* (?P<digest>[0-9a-f]{16})")


class EngineError(ValueError):
    """No engine, or a damaged one. The message can be shown to a student."""


@dataclass(frozen=True)
class EngineCell:
    """One cell of an engine. `solution`: students write it themselves; `cell` is then its grade_id, else its id.
    `checks`: the test cells of an exercise. `optional`: it does not decide whose engine carries over,
    such as all of *Further*.
    """

    lesson: str
    cell: str
    solution: bool
    source: str
    checks: tuple[str, ...] = ()
    optional: bool = False


@dataclass(frozen=True)
class SealedEngine:
    """The reference engine after a lesson, cell by cell, and the test cells that check that lesson's part, without
    those of optional exercises.
    """

    after: str
    start_of: str
    cells: tuple[EngineCell, ...]
    checks: tuple[str, ...]

    @property
    def source(self) -> str:
        return join(cell.source for cell in self.cells)

    @property
    def is_held_back(self) -> bool:
        """Whether its solutions are left out."""
        return any(cell.solution and not cell.source for cell in self.cells)

    @property
    def number(self) -> str:
        """The number of the lesson after which the engine is like this, such as `02`."""
        return self.after.partition("_")[0]


def join(sources: Any) -> str:
    """The sources of cells as one script."""
    return "\n\n\n".join(source.strip("\n") for source in sources) + "\n"


def seal_engine(engine: SealedEngine) -> str:
    """An engine as the text that stands in a lesson's call. Equal engines give equal text."""
    data = json.dumps(asdict(engine), ensure_ascii=False, separators=(",", ":")).encode()
    return KIND + base64.urlsafe_b64encode(zlib.compress(data, 9)).decode()


def open_engine(sealed: object) -> SealedEngine:
    """The engine in a sealed text. Raises EngineError."""
    try:
        if not isinstance(sealed, str) or not sealed.startswith(KIND):
            raise ValueError("another kind of text")
        body = base64.b64decode(sealed[len(KIND) :], altchars=b"-_", validate=True)
        record = json.loads(zlib.decompress(body))
        cells = tuple(EngineCell(**{**cell, "checks": tuple(cell.get("checks", ()))}) for cell in record.pop("cells"))
        return SealedEngine(**{**record, "cells": cells, "checks": tuple(record["checks"])})
    except (ValueError, TypeError, KeyError, AttributeError, binascii.Error, zlib.error) as error:
        raise EngineError("the text in start_lesson(...) is damaged; fetch the lesson again") from error


def held_back(engine: SealedEngine) -> SealedEngine:
    """The engine without the solutions of exercises."""
    cells = (replace(cell, source="") if cell.solution else cell for cell in engine.cells)
    return replace(engine, cells=tuple(cells))


def read_reference(folder: Path, after: str) -> SealedEngine:
    """The reference engine after a lesson, from the file that a class gets later. Raises EngineError."""
    try:
        engine = open_engine((folder / REFERENCE_FILE).read_text(encoding="utf-8").strip())
    except FileNotFoundError:
        raise EngineError(f"{REFERENCE_FILE} is not in the folder {folder.name}") from None
    except (OSError, ValueError) as error:
        raise EngineError(f"{REFERENCE_FILE} is damaged; fetch it again") from error
    if engine.after != after:
        raise EngineError(f"{REFERENCE_FILE} in the folder {folder.name} belongs to another lesson")
    if engine.is_held_back:
        raise EngineError(f"{REFERENCE_FILE} in the folder {folder.name} has no solutions in it")
    return engine


def file_text(source: str, lesson: str) -> str:
    """The content of engine.py for an engine of the student's own."""
    return f"{FIRST_LINE.format(lesson=lesson, digest=digest(source))}\n{source}"


def read_file(path: Path, lesson: str) -> str:
    """The whole content of engine.py. Raises FileNotFoundError, or EngineError if start_lesson did not write this."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise EngineError(f"{FILE} cannot be read") from error
    first, _, source = text.partition("\n")
    words = FIRST_LINE_READ.fullmatch(first)
    if words is None or words["digest"] != digest(source):
        raise EngineError(f"{FILE} was changed or is damaged")
    if words["lesson"] != lesson:
        raise EngineError(f"{FILE} belongs to another lesson")
    return text


def digest(source: str) -> str:
    return hashlib.sha256(source.encode("utf-8", "replace")).hexdigest()[:16]


def define(source: str, filename: str, namespace: dict[str, Any]) -> None:
    """Run an engine's source in a namespace, with its lines available to tracebacks. Raises whatever it raises."""
    lines = [line + "\n" for line in source.split("\n")]
    linecache.cache[filename] = (len(source), None, lines, filename)
    exec(compile(source, filename, "exec", dont_inherit=True), namespace)


def scratch() -> dict[str, Any]:
    """A namespace to try an engine in, which looks like a notebook's."""
    return {"__name__": "__main__", "__builtins__": __builtins__}


def reference_name(engine: SealedEngine) -> str:
    return f"<reference engine after lesson {engine.number}>"


def start_graded(sealed: object = None, own: bool | None = None) -> None:
    """`start_lesson` while grading: the engine that was handed in, else the reference."""
    namespace = sys._getframe(1).f_globals
    engine = LAST[0] if sealed is None and LAST else open_engine(sealed)
    LAST[:] = [engine]
    try:
        text = _handed_in(engine, own)
    except EngineError as error:
        if engine.is_held_back:
            raise
        define(engine.source, reference_name(engine), namespace)
        print(f"Using the reference engine of lesson {engine.number}: {error}.")
    else:
        define(text, FILE, namespace)
        print(f"Using your own engine of lesson {engine.number}, from {FILE}.")


def _handed_in(engine: SealedEngine, own: bool | None) -> str:
    if own is False:
        raise EngineError("as you asked")
    try:
        text = read_file(Path(FILE), engine.after)
        define(text, FILE, scratch())
    except FileNotFoundError:
        raise EngineError(f"{FILE} was not handed in") from None
    except EngineError:
        raise
    except (Exception, SystemExit) as error:
        raise EngineError(f"{FILE} does not run ({type(error).__name__}: {error})") from error
    return text
