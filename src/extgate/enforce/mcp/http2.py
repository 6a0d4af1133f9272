"""What both ends of an HTTP/2 connection have in common: frames, flow control and bounds. The protocol itself is h2's.

What is sent waits for the other side's windows and for the socket; what is received is given on at once and its window
opened again, so that no more is held here than the streams' readers hold.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import cast

from h2.config import H2Configuration
from h2.connection import ConnectionInputs, ConnectionState, H2Connection, H2ConnectionStateMachine
from h2.errors import ErrorCodes
from h2.events import DataReceived, Event, StreamReset, WindowUpdated
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes, Settings

from extgate.enforce.mcp.long import PIECE, Data, Long

STREAMS = 100
"""How many streams the other side may have open at once."""
WINDOW = 1024 * 1024
"""Bytes of one stream, and eight times as many of a connection, that may be on their way."""
MAX_RESETS = 500
"""Streams that may come to nothing before a connection is taken for an attack, beyond those that went well."""
_LOUD = 16 * 1024
"""Frames are not longer than this unless the other side wants them to be."""


@dataclass(slots=True, eq=False)
class _Outgoing:
    """What waits to be sent on a stream. size: of what is in memory; is_ended: whether nothing follows."""

    parts: deque[memoryview | Iterator[bytes | memoryview]] = field(default_factory=deque)
    size: int = 0
    is_ended: bool = False

    def add(self, data: tuple[Data, ...]) -> None:
        for part in data:
            if len(part):
                self.parts.append(part.pieces() if isinstance(part, Long) else memoryview(part))
                self.size += 0 if isinstance(part, Long) else len(part)

    def first(self) -> memoryview:
        """The piece that is next; empty when nothing is left."""
        while self.parts:
            part = self.parts[0]
            if isinstance(part, memoryview):
                return part
            piece = next(part, None)
            if piece is None:
                self.parts.popleft()
            else:
                self.parts.appendleft(memoryview(piece))
                self.size += len(piece)
        return memoryview(b"")

    def took(self, size: int) -> None:
        """Notes that so many bytes of the first piece were sent."""
        part = cast("memoryview", self.parts[0])
        self.size -= size
        if size == len(part):
            self.parts.popleft()
        else:
            self.parts[0] = part[size:]


class _OpenStates(H2ConnectionStateMachine):
    """Those of a connection whose other side takes no new streams: the streams under way go on (RFC 9113, 6.8), which
    h2 4.4 ends at once."""

    _transitions = {  # noqa: RUF012 - as the class above has it
        **H2ConnectionStateMachine._transitions,
        (ConnectionState.CLIENT_OPEN, ConnectionInputs.RECV_GOAWAY): (None, ConnectionState.CLIENT_OPEN),
        (ConnectionState.SERVER_OPEN, ConnectionInputs.RECV_GOAWAY): (None, ConnectionState.SERVER_OPEN),
    }


class _Frames(H2Connection):
    def clear_outbound_data_buffer(self) -> None:
        """Keeps what is still to be said on those streams."""


class Http2(asyncio.Protocol):
    """One end of a connection. unsent: what may wait for a reader, on a stream and in the socket, in bytes."""

    transport: asyncio.Transport

    def __init__(self, *, is_client: bool, unsent: int) -> None:
        self.h2 = _Frames(H2Configuration(client_side=is_client, header_encoding="latin-1"))
        self.h2.state_machine = _OpenStates()
        said = {SettingCodes.INITIAL_WINDOW_SIZE: WINDOW, SettingCodes.MAX_CONCURRENT_STREAMS: STREAMS}
        said[SettingCodes.MAX_HEADER_LIST_SIZE] = H2Connection.DEFAULT_MAX_HEADER_LIST_SIZE
        said |= {SettingCodes.ENABLE_PUSH: 0} if is_client else {}
        self.h2.local_settings = Settings(client=is_client, initial_values=said)
        self.unsent = unsent
        self.out: dict[int, _Outgoing] = {}
        self.moved_at = time.monotonic()
        self._is_paused = self._is_handing = False
        self._resets = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.h2.initiate_connection()
        self.h2.increment_flow_control_window(8 * WINDOW)
        self.flush()

    # ------------------------------------------------------------------------------------------ what each end does

    def take(self, event: Event) -> None:
        """Something that the other side did."""
        raise NotImplementedError

    def lost(self, stream: int, code: int) -> None:
        """A stream has ended before its time; the other side's reason."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------------------ in

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._is_handing = True
        try:
            for event in self.h2.receive_data(data):
                self._take(event)
        except ProtocolError:
            self.close()
        finally:
            self._is_handing = False
        self.flush()

    def _take(self, event: Event) -> None:
        if isinstance(event, StreamReset):
            self.out.pop(event.stream_id, None)
            self._resets += 1
            self.lost(event.stream_id, int(event.error_code or 0))
            if self._resets > MAX_RESETS:
                self.close(ErrorCodes.ENHANCE_YOUR_CALM)
        elif isinstance(event, WindowUpdated):
            for stream in [event.stream_id] if event.stream_id else tuple(self.out):
                self.move(stream)
        else:
            if isinstance(event, DataReceived):
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            self.take(event)

    def went_well(self) -> None:
        """A stream has come to its end: one more may come to nothing."""
        self._resets = max(0, self._resets - 1)

    # ------------------------------------------------------------------------------------------ out

    def send(self, stream: int, data: tuple[Data, ...], *, is_end: bool = False) -> bool:
        """Sends data on a stream; False when too much waits for a reader, and the stream is given up."""
        out = self.out.setdefault(stream, _Outgoing())
        out.add(data)
        out.is_ended = is_end
        self.move(stream)
        if out.size > self.unsent:
            self.reset(stream, ErrorCodes.ENHANCE_YOUR_CALM)
            return False
        self.flush()
        return True

    def move(self, stream: int) -> None:
        """Sends what the windows let through now."""
        out = self.out.get(stream)
        while out is not None and not self._is_paused and not self.transport.is_closing():
            piece = out.first()
            if not piece:
                if out.is_ended:
                    self.h2.end_stream(stream)
                    del self.out[stream]
                elif not out.parts:
                    del self.out[stream]
                return
            room = min(len(piece), self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size, _LOUD)
            if room <= 0:
                return
            self.h2.send_data(stream, bytes(piece[:room]))
            out.took(room)
            self.moved_at = time.monotonic()
            if self.transport.get_write_buffer_size() < PIECE:
                self._write()

    def reset(self, stream: int, code: ErrorCodes = ErrorCodes.CANCEL) -> None:
        """Gives a stream up."""
        self.out.pop(stream, None)
        try:
            self.h2.reset_stream(stream, code)
        except ProtocolError:
            return  # it has ended already
        self.flush()

    def flush(self) -> None:
        """Writes what is to be written; a side that does not read is cut off."""
        if not self._is_handing:
            self._write()

    def _write(self) -> None:
        data = self.h2.data_to_send()
        if data and not self.transport.is_closing():
            self.transport.write(data)
            if self.transport.get_write_buffer_size() > self.unsent:
                self.transport.abort()

    def pause_writing(self) -> None:
        self._is_paused = True

    def resume_writing(self) -> None:
        self._is_paused = False
        for stream in tuple(self.out):
            self.move(stream)
        self.flush()

    def close(self, code: ErrorCodes = ErrorCodes.NO_ERROR) -> None:
        """Says goodbye and closes."""
        if not self.transport.is_closing():
            with suppress(ProtocolError):  # it was said, or the other side's fault has ended it
                self.h2.close_connection(code)
            self._write()
            self.transport.close()
