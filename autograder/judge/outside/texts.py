"""The texts that a test may execute: those that the instructor wrote, word for word, and plain data.

A test may say `eval("f(3)")`, or `exec(f"q{number}()")`. Such a text stands in the instructor's cells, with numbers or
other texts from these cells filled in. Anything else may come from a student.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import re
from collections.abc import Iterable, Iterator

NUMBER = r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
FIELD = re.compile(r"%[sdrif]|\{[^{}]*\}")
HARMLESS = ("", "pass")
LONGEST_WORD = 80  # of a text that is filled into another


class Texts:
    """The texts in some of the instructor's statements, collected when they are first needed."""

    def __init__(self, statements: Iterable[ast.AST] = ()):
        self.statements = list(statements)

    def add(self, statements: Iterable[ast.AST]) -> None:
        """Add further statements of the instructor's."""
        self.statements.extend(statements)
        for name in ("_nodes", "_literals", "_whole", "_patterns"):
            vars(self).pop(name, None)

    def allow(self, text: str | bytes) -> bool:
        """Whether this text may be executed. Bytes that are not UTF-8 may not: their meaning depends on the reader."""
        try:
            decoded = text if isinstance(text, str) else text.decode()
        except UnicodeDecodeError:
            return False
        plain = _without_indents(decoded)
        return (
            _is_data(decoded)
            or plain in HARMLESS
            or plain in self._whole
            or any(pattern.fullmatch(plain) for pattern in self._patterns)
        )

    @functools.cached_property
    def _nodes(self) -> list[ast.AST]:
        return [node for statement in self.statements for node in ast.walk(statement)]

    @functools.cached_property
    def _literals(self) -> list[str]:
        values = (node.value for node in self._nodes if isinstance(node, ast.Constant))
        return [text for value in values if (text := _text_of(value)) is not None]

    @functools.cached_property
    def _whole(self) -> frozenset[str]:
        """The texts themselves, the examples in them, and annotations, which are kept as texts."""
        found = {*self._literals, *map(ast.unparse, self._annotations())}
        for text in self._literals:
            if ">>>" in text:
                import doctest  # and with it the debugger and unittest, which few tests need

                with contextlib.suppress(ValueError):
                    found.update(example.source for example in doctest.DocTestParser().get_examples(text))
        return frozenset(_without_indents(text) for text in found)

    def _annotations(self) -> Iterator[ast.expr]:
        for node in self._nodes:
            found = [getattr(node, name, None) for name in ("annotation", "returns")]
            yield from (part for part in found if isinstance(part, ast.expr))

    @functools.cached_property
    def _patterns(self) -> list[re.Pattern[str]]:
        """The texts with something filled in: a number, or one of the other texts."""
        filled = "|".join([NUMBER, *(re.escape(text) for text in self._literals if 0 < len(text) <= LONGEST_WORD)])
        hole = f"(?:{filled})"
        return [re.compile(hole.join(map(re.escape, parts))) for parts in self._with_holes()]

    def _with_holes(self) -> Iterator[list[str]]:
        for node in self._nodes:
            if isinstance(node, ast.JoinedStr):
                parts = [""]
                for value in node.values:
                    text = _text_of(value.value) if isinstance(value, ast.Constant) else None
                    if text is None:
                        parts.append("")
                    else:
                        parts[-1] += text
                yield _normal(parts)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and FIELD.search(node.value):
                yield _normal(FIELD.split(node.value))


def _text_of(value: object) -> str | None:
    if isinstance(value, bytes):
        with contextlib.suppress(UnicodeDecodeError):
            return value.decode()
    return value if isinstance(value, str) else None


def _normal(parts: list[str]) -> list[str]:
    """The parts as they are in a text without indents."""
    return _without_indents("\0".join(parts)).split("\0")


def _without_indents(text: str) -> str:
    """Strip indents and surrounding blank lines: texts that differ only in these are the same."""
    return "\n".join(line.strip(" \t") for line in text.strip().split("\n"))


def _is_data(text: str) -> bool:
    """Whether a text is a literal, such as a list from a file, and names no encoding that could change its meaning."""
    if "coding" in text:
        return False
    try:
        ast.literal_eval(text)
    except Exception:
        return False
    return True
