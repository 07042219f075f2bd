"""The instructor's side of a notebook, as a judge gets it: the notebook with its solution, and the files beside it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any


@dataclass(frozen=True, eq=False)
class Source:
    """What all submissions of a notebook share. `notebook` is the instructor's, if there is one; `files` lie beside it:
    modules that tests import, and data.
    """

    notebook: Any | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)

    @cached_property
    def text(self) -> bytes:
        return json.dumps(self.notebook).encode()

    @cached_property
    def key(self) -> str:
        """A name for exactly this content."""
        digest = hashlib.sha256(self.text)
        for name, content in sorted(self.given.items()):
            digest.update(f"\0{name}\0{len(content)}\0".encode("utf-8", "surrogateescape") + content)
        return digest.hexdigest()

    @cached_property
    def given(self) -> dict[str, bytes]:
        """The files without notebooks: those hold solutions and hidden tests."""
        return {name: content for name, content in self.files.items() if not name.lower().endswith(".ipynb")}
