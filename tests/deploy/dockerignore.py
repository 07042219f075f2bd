"""Reads a .dockerignore by Docker's own rules, so that a test can say what an image would hold without an engine.

The rules are those of Docker's manual ("Build context", ".dockerignore files") and of the program that Docker and
BuildKit use for it (moby/patternmatcher): all patterns are looked at in order, a pattern matches a path if it matches
the path or a folder above it, and the last one that matches decides.
"""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path, PurePosixPath

TOKEN = re.compile(r"\*\*/?|\*|\?|\\.|\[(?:\\.|[^\]])*\]|.", re.DOTALL)
SPECIAL = re.compile(r"[*?\\\[\]]")
MEANS = {"**": "(.*/)?", "**/": "(.*/)?", "*": "[^/]*", "?": "[^/]"}
Rules = list[tuple[bool, re.Pattern[str]]]


def rules_of(text: str) -> Rules:
    """The patterns of a .dockerignore in order, each with whether it brings back what it matches."""
    rules = []
    for line in text.removeprefix("\ufeff").splitlines():
        pattern = line.strip()
        if pattern and not line.startswith("#"):
            brings_back = pattern.startswith("!")
            name = pattern[brings_back:].strip()
            assert name, "Docker refuses a ! without a pattern"
            rules.append((brings_back, _expression(posixpath.normpath(name).lstrip("/"))))
    return rules


def enters(path: str, rules: Rules) -> bool:
    """Whether the image would hold the file of this path, which is relative to the build's folder."""
    parts = [str(part) for part in (PurePosixPath(path), *PurePosixPath(path).parents)][:-1]
    matching = [brings_back for brings_back, expression in rules if any(map(expression.fullmatch, parts))]
    return matching[-1] if matching else True


def image_of(folder: Path) -> set[str]:
    """The files below `folder` that `COPY . .` puts into an image, by the folder's .dockerignore."""
    rules = rules_of((folder / ".dockerignore").read_text(encoding="utf-8"))
    files = (Path(where, name).relative_to(folder) for where, _, names in os.walk(folder) for name in names)
    return {path.as_posix() for path in files if enters(path.as_posix(), rules)}


def _expression(pattern: str) -> re.Pattern[str]:
    end = pattern.removeprefix("**")
    if end != pattern and not SPECIAL.search(end):  # Docker compares the end of the path alone
        return re.compile(f"(.*/)?{re.escape(end[1:])}" if end[:1] == "/" else f".*{re.escape(end)}", re.DOTALL)
    if pattern.endswith("**"):
        return re.compile(_translated(pattern[:-2]) + ".*", re.DOTALL)
    return re.compile(_translated(pattern), re.DOTALL)


def _translated(pattern: str) -> str:
    tokens = TOKEN.findall(pattern)
    return "".join(MEANS.get(token, token if token[0] in "[\\" else re.escape(token)) for token in tokens)
