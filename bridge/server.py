"""What a server says of itself, and how it is set up: frozen, and handed to whoever needs it."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from bridge.asking.routes import ClientRule, Ways
from bridge.protocol.clients import Principal
from bridge.protocol.messages import Json
from bridge.routes.push import PushLimits
from bridge.session import SessionLimits

__all__ = ["Authenticate", "Denied", "Options", "ServerInfo", "Transport"]


class Denied(msgspec.Struct, frozen=True):
    """A refusal by `authenticate`.

    Args:
        status: 401, or 403 where the principal is known and may not.
        challenge: the `WWW-Authenticate` header; None for none.
        message: a text for people.
    """

    status: Literal[401, 403] = 401
    challenge: str | None = "Bearer"
    message: str = "Authentication is required"


Authenticate: TypeAlias = Callable[
    [Mapping[str, Any]], Principal | None | Denied | Awaitable[Principal | None | Denied]
]
"""From an ASGI scope to who is behind it: a principal, None for nobody in particular, or a refusal."""


Transport: TypeAlias = Literal["http", "sse", "websocket"]
"""What an ASGI app can serve."""


class ServerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a server says of itself, as the newest revision has it."""

    info: Json
    instructions: str | None = None


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How a bridge is set up.

    Args:
        elicitation: whether tools may ask.
        fallback: how clients are asked that show no form: `result` (through the chat), `wait` (likewise, the question
            sent as a log message while the call waits) or `off`.
        wait_seconds: how long a call waits under `wait`.
        chat_consent: whether an answer that a model passes on may let a tool act that changes something.
        on_invalid: what an answer that does not match does: `error` ends the call, `reask` asks again with the reasons.
        not_secret: free-text fields that sound like a secret and are none.
        client_rules: what is decided about some clients; the first that matches counts.
        page_size: how many entries a page of a list has.
        sessions: how long legacy sessions live, how many there may be.
        push: how long a pushed question waits.
        round_seconds: how long a modern round can be answered.
        pending_seconds: how long a call waits for a chat answer; None: 1 h in memory, else 24 h.
        grace_seconds: how long a legacy call goes on whose client has gone.
        shutdown_seconds: how long what runs may go on once the process is told to end.
        allowed_hosts: values of `Host` that are served, besides loopback names; `*` for any.
        allowed_origins: values of `Origin` that are served, besides loopback ones; `*` for any.
        list_ttl_seconds: how long modern clients may keep a list.
        read_ttl_seconds: how long they may keep what they read of a resource.
        authenticate: who is behind a request.
        threads: how many synchronous tools may run at once.
        transports: what the ASGI app serves: `http` at its own path, `sse` (`/sse` and `/messages`) and `websocket`
            (`/ws`) beside it.
        health: whether it serves `/healthz` (the process is alive) and `/readyz` (its store answers) beside it.
        metrics: whether it serves `/metrics` for Prometheus beside it, to everybody (extra `metrics`).
    """

    elicitation: bool = False
    fallback: Literal["result", "wait", "off"] = "result"
    wait_seconds: float = 60.0
    chat_consent: Literal["allow", "deny"] = "allow"
    on_invalid: Literal["error", "reask"] = "error"
    not_secret: tuple[str, ...] = ()
    client_rules: tuple[ClientRule, ...] = ()
    page_size: int = 100
    sessions: SessionLimits = SessionLimits()
    push: PushLimits = PushLimits()
    round_seconds: float = 3600.0
    pending_seconds: float | None = None
    grace_seconds: float = 60.0
    shutdown_seconds: float = 10.0
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    list_ttl_seconds: float = 60.0
    read_ttl_seconds: float = 0.0
    authenticate: Authenticate | None = None
    threads: int = 40
    transports: tuple[Transport, ...] = ("http", "sse", "websocket")
    health: bool = True
    metrics: bool = False

    @property
    def ways(self) -> Ways:
        """Which route a question takes, as all of this is set up."""
        return Ways(elicitation=self.elicitation, fallback=self.fallback != "off", rules=self.client_rules)
