"""Messages between the judge and a sandbox: a JSON header and raw buffers, every length declared and checked before
memory is allocated.

Both sides use this file. A receiver has one deadline for the whole message, so that a slow sender cannot stretch it
byte by byte.
"""

from __future__ import annotations

import json
import math
import select
import socket
import struct
import time
from collections.abc import Sequence
from typing import Any

MAGIC = b"agw1"
PREFIX = struct.Struct("<4sIIQ")  # magic, header bytes, number of buffers, bytes of all buffers
LENGTH = struct.Struct("<Q")


class WireError(Exception):
    """The other side broke the protocol; the connection can no longer be used."""


class WireClosed(WireError):  # noqa: N818
    """The other side has gone."""


class WireTimeout(WireError):  # noqa: N818
    """The deadline passed before the message was complete."""


class Wire:
    """One end of a connected stream socket that carries whole messages."""

    def __init__(self, connection: socket.socket, max_bytes: int, max_header: int, max_buffers: int = 20_000):
        self.connection = connection
        self.max_bytes, self.max_header, self.max_buffers = max_bytes, max_header, max_buffers
        connection.setblocking(False)

    def send(self, header: Any, buffers: Sequence[Any] = (), deadline: float = math.inf) -> None:
        """Send one message. Raises WireTimeout when the other side does not read it in time, WireError when it is too
        large.
        """
        text = json.dumps(header, separators=(",", ":")).encode()
        views = [memoryview(buffer).cast("B") for buffer in buffers]
        total = sum(len(view) for view in views)
        if len(text) > self.max_header or total > self.max_bytes or len(views) > self.max_buffers:
            raise WireError("the message is too large")
        lengths = b"".join(LENGTH.pack(len(view)) for view in views)
        self._send_bytes(memoryview(PREFIX.pack(MAGIC, len(text), len(views), total) + lengths + text), deadline)
        for view in views:
            self._send_bytes(view, deadline)

    def receive(self, deadline: float = math.inf) -> tuple[Any, list[memoryview]]:
        """The next message as (header, buffers). Raises WireClosed, WireTimeout, or WireError if it is malformed."""
        magic, header_length, count, total = PREFIX.unpack(self._receive_bytes(PREFIX.size, deadline))
        if magic != MAGIC or header_length > self.max_header or count > self.max_buffers or total > self.max_bytes:
            raise WireError("the message is malformed or too large")
        lengths = [n for (n,) in LENGTH.iter_unpack(self._receive_bytes(count * LENGTH.size, deadline))]
        if sum(lengths) != total:
            raise WireError("the lengths of a message do not add up")
        text = self._receive_bytes(header_length, deadline)
        body = memoryview(self._receive_bytes(total, deadline))
        try:
            header = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise WireError(f"the header of a message is not JSON: {type(error).__name__}") from None
        buffers, start = [], 0
        for length in lengths:
            buffers.append(body[start : start + length])
            start += length
        return header, buffers

    def close(self) -> None:
        self.connection.close()

    def _send_bytes(self, view: memoryview, deadline: float) -> None:
        while view:
            try:
                view = view[self.connection.send(view) :]
            except BlockingIOError:
                self._wait(select.POLLOUT, deadline)
            except OSError as error:
                raise WireClosed(str(error)) from None

    def _receive_bytes(self, count: int, deadline: float) -> bytearray:
        buffer = bytearray(count)
        view, filled = memoryview(buffer), 0
        while filled < count:
            try:
                received = self.connection.recv_into(view[filled:])
            except BlockingIOError:
                self._wait(select.POLLIN, deadline)
                continue
            except OSError as error:
                raise WireClosed(str(error)) from None
            if received == 0:
                raise WireClosed("the other side closed the connection")
            filled += received
            if filled < count and time.monotonic() > deadline:
                raise WireTimeout
        return buffer

    def _wait(self, event: int, deadline: float) -> None:
        poll = select.poll()
        poll.register(self.connection, event)
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise WireTimeout
        if not poll.poll(None if remaining == math.inf else math.ceil(remaining * 1000)):
            raise WireTimeout
