"""Collects what code shows (streams, displays, results, errors) as nbformat output dicts, with bounds on number and
size.

One collector exists per process; `start()` begins a new list. Text past the bound is dropped and a note says so,
because a loop that prints forever must not fill the memory.
"""

from __future__ import annotations

import io
import os
from base64 import b64encode
from collections.abc import Callable
from typing import Any

TRUNCATED = "\n[the rest of the output was dropped: it is too long]\n"


class Collector:
    """The outputs of the cell or question that is running."""

    def __init__(self, max_bytes: int = 1 << 20, max_outputs: int = 200):
        self.max_bytes, self.max_outputs = max_bytes, max_outputs
        self.clear_next = False
        self.from_descriptors: Callable[[], None] = lambda: None  # takes what subprocesses have written meanwhile
        self.start()

    def start(self) -> None:
        self.outputs: list[dict[str, Any]] = []
        self.room = self.max_bytes
        self.clear_next = False

    def finish(self) -> list[dict[str, Any]]:
        """The outputs since `start`, streams joined to one text each."""
        outputs, self.outputs = self.outputs, []
        for output in outputs:
            if output["output_type"] == "stream":
                output["text"] = "".join(output["text"])
        return outputs

    def text(self, name: str, text: str) -> None:
        """Add text to a stream, joined with the previous output if that is the same stream."""
        self.from_descriptors()
        if not self._take(len(text)):
            return
        self._clear_if_asked()
        last = self.outputs[-1] if self.outputs else None
        if last is not None and last["output_type"] == "stream" and last["name"] == name:
            last["text"].append(text)
        elif len(self.outputs) < self.max_outputs:
            self.outputs.append({"output_type": "stream", "name": name, "text": [text]})

    def add(self, output: dict[str, Any]) -> None:
        """Add a display, a result or an error."""
        self.from_descriptors()
        size = sum(len(value) if isinstance(value, str) else 1000 for value in output.get("data", {}).values())
        if self._take(size) and len(self.outputs) < self.max_outputs:
            self._clear_if_asked()
            self.outputs.append(output)

    def clear(self, wait: bool) -> None:
        self.clear_next = True
        if not wait:
            self._clear_if_asked()

    def _clear_if_asked(self) -> None:
        if self.clear_next:
            self.outputs.clear()
            self.clear_next = False

    def _take(self, size: int) -> bool:
        if self.room < 0:
            return False
        self.room -= size
        if self.room < 0:
            self.outputs.append({"output_type": "stream", "name": "stdout", "text": [TRUNCATED]})
        return self.room >= 0


class Stream(io.TextIOBase):
    """What `sys.stdout` and `sys.stderr` are inside: writes go to the collector at once, so the order among outputs is
    kept.
    """

    encoding = "utf-8"
    errors = "strict"

    def __init__(self, name: str, collector: Collector, descriptor: int):
        self.name, self.collector, self.descriptor = name, collector, descriptor

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if text:
            self.collector.text(self.name, text)
        return len(text)

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self.descriptor


class DescriptorFile:
    """Catches what subprocesses and C code write to descriptors 1 and 2: both point at one memory file, read after
    each cell.
    """

    def __init__(self) -> None:
        self.file = os.memfd_create("output") if hasattr(os, "memfd_create") else os.open(os.devnull, os.O_RDWR)
        flags_file = f"/proc/self/fd/{self.file}"
        append = os.open(flags_file, os.O_WRONLY | os.O_APPEND) if os.path.exists(flags_file) else self.file
        os.dup2(append, 1)
        os.dup2(append, 2)

    def take(self, collector: Collector) -> None:
        """Move what was written since the last call into the collector's stdout."""
        try:
            size = os.lseek(self.file, 0, os.SEEK_END)
        except OSError:  # a student may have closed it
            return
        if size:
            os.lseek(self.file, 0, os.SEEK_SET)
            text = os.read(self.file, min(size, collector.max_bytes + 1)).decode("utf-8", "replace")
            os.ftruncate(self.file, 0)
            collector.text("stdout", text)


def as_json_data(data: dict[str, Any]) -> dict[str, Any]:
    """A MIME bundle with binary images as base64, as a kernel sends them."""
    return {kind: b64encode(value).decode() if isinstance(value, bytes) else value for kind, value in data.items()}
