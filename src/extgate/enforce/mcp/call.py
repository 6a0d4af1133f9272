"""What the protocol core hands out: requests on their way to servers, and what else the rim has to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from extgate.core.extension import Extension
from extgate.enforce.mcp.envelope import Envelope, Fields, Id, Value, object_of
from extgate.enforce.mcp.long import Data

if TYPE_CHECKING:
    from extgate.enforce.mcp.quotas import Lease
    from extgate.enforce.mcp.session import Session

LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Protocol versions that begin with `initialize`."""
MODERN = ("2026-07-28",)
"""Protocol versions in which each request stands alone."""
META_VERSION = "io.modelcontextprotocol/protocolVersion"
META_CLIENT = "io.modelcontextprotocol/clientInfo"
META_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
META_SERVER = "io.modelcontextprotocol/serverInfo"
META_SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


@dataclass(slots=True, kw_only=True, eq=False)
class Call:
    """One request on its way to a server.

    id: the client's, as it came; key: its value; token: the client's progress token as it came, or empty. is_modern:
    the client speaks 2026-07-28. ext: what was judged. done: takes a reply that no client waits for, None when there
    will be none. headers: of the client's request, that go on to an HTTP server. sent_at: on the rim's clock. lease:
    what it holds of its limits. number: the id that it has with its server. task: the name and arguments that the
    client gave, where the call begins a task.
    """

    session: Session | None
    server: str
    method: str
    params: Fields
    id: bytes = b"null"
    key: Id | None = None
    token: bytes = b""
    is_modern: bool = False
    ext: Extension | None = None
    done: Callable[[Envelope | None], None] | None = None
    headers: dict[str, str] = field(default_factory=dict)
    sent_at: float = 0.0
    lease: Lease | None = None
    number: int = 0
    task: tuple[str, Value | None] | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """A message for the client. about: the id of its request that the message belongs to; is_last: it answers it."""

    data: Data
    about: Id | None = None
    is_last: bool = False


@dataclass(frozen=True, slots=True)
class Ask:
    """A request that passed, for its server."""

    call: Call


@dataclass(frozen=True, slots=True)
class Cancel:
    """A request that the client no longer waits for. reason: of its notification, as it came."""

    call: Call
    reason: bytes = b""


@dataclass(frozen=True, slots=True)
class Tell:
    """A notification for a server, or with an empty name for all that this client has a session of its own with."""

    server: str
    method: str
    params: Fields


@dataclass(frozen=True, slots=True)
class SetLevel:
    """The client wants the logs of its servers from this level on, as it came."""

    level: bytes


@dataclass(frozen=True, slots=True)
class Return:
    """The client's answer to what a server has asked it. to: what the rim gave with the question."""

    to: object
    data: bytes


Action = Reply | Ask | Cancel | Tell | SetLevel | Return


def is_modern(message: Envelope) -> bool:
    """Whether a request stands alone, with its protocol version in `_meta`."""
    meta = message.params.get("_meta")
    return meta is not None and META_VERSION in object_of(meta)
