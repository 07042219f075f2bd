"""The output of a watch, which may fail while the watch goes on."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from threading import Event
from typing import Any, TextIO


class Output:
    """A stream on which a line that cannot be printed is dropped: grading does not depend on a log on a full disk. If
    nobody reads the stream any more, the watch stops as after a signal.
    """

    def __init__(self, stream: TextIO, stop: Event) -> None:
        self.stream, self.stop = stream, stop

    def write(self, text: str) -> int:
        with self._failures_taken():
            self.stream.write(text)
        return len(text)

    def flush(self) -> None:
        with self._failures_taken():
            self.stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    @contextlib.contextmanager
    def _failures_taken(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            self.stop.set()
            with open(os.devnull, "w") as nothing:  # takes what the stream still holds, which Python writes at its end
                os.dup2(nothing.fileno(), self.stream.fileno())
        except (OSError, ValueError):  # ValueError: a letter that the stream's encoding does not have
            pass
