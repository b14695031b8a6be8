"""Who may come in: `Host` and `Origin` are checked, then whoever is behind the request is asked for."""

import inspect
from typing import Any

from bridge.protocol.clients import ANONYMOUS, Principal
from bridge.server import Denied, Options
from bridge.transports.gate import Gate, Headers, Refusal

__all__ = ["Admission"]


class Admission:
    """The same door for every transport that is reached by HTTP.

    Args:
        options: how the bridge is set up.
    """

    def __init__(self, options: Options) -> None:
        self._gate = Gate(options.allowed_hosts, options.allowed_origins)
        self._authenticate = options.authenticate

    async def admit(self, scope: Any, headers: Headers) -> Principal | Refusal:
        """Decide about a request.

        Args:
            scope: its ASGI scope, of HTTP or of a WebSocket.
            headers: its headers, names in lower case.

        Returns:
            Who is behind it, or why it is refused.
        """
        refusal = self._gate.check(headers)
        if refusal is not None:
            return refusal
        if self._authenticate is None:
            return ANONYMOUS
        found = self._authenticate(scope)
        who = await found if inspect.isawaitable(found) else found
        if isinstance(who, Denied):
            challenge = ((b"www-authenticate", who.challenge.encode()),) if who.challenge is not None else ()
            return Refusal(who.status, who.message, challenge)
        return ANONYMOUS if who is None else who
