"""The pending calls of clients without a session, whom the operator put on chat: the client itself carries its call."""

import secrets
import time
from collections.abc import Callable, Mapping

import msgspec

from bridge.asking.fallback import FALLBACK_TOOL_NAME
from bridge.asking.question import Question, Reply
from bridge.asking.seal import Broken, Claims, Seal
from bridge.calls import Client, Stored
from bridge.pending import CALL_DECODER, PendingCall, waiting_seconds
from bridge.stores.base import Store
from bridge.stores.identity import StoreIdentity
from bridge.upstreams.base import CallRequest

__all__ = ["SealedPending"]


class SealedPending:
    """The pending calls of clients without a session: the `elicitId` is the sealed call.

    Args:
        seal: what it is sealed with.
        store: where invalid answers are counted.
        identity: the id of the store.
        audience: the server's name.
        ttl_seconds: how long one waits.
        held_seconds: how long one waits that is suspended in a process.
        clock: seconds since the epoch.
    """

    def __init__(
        self,
        seal: Seal,
        store: Store,
        identity: StoreIdentity,
        audience: str,
        ttl_seconds: float | None = None,
        held_seconds: float = 3600.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._seal = seal
        self._held_seconds = held_seconds
        self._store = store
        self._identity = identity
        self._audience = audience
        self._clock = clock
        self.ttl_seconds = 3600.0 if ttl_seconds is None else ttl_seconds

    async def add(self, client: Client, request: CallRequest, stored: Stored, questions: list[Question]) -> PendingCall:
        """See `Pending`."""
        now = self._clock()
        call = PendingCall(
            elicit_id="",
            request=request,
            stored=stored,
            questions=questions,
            asked_at=now,
            expires_at=now + waiting_seconds(stored, self.ttl_seconds, self._held_seconds),
        )
        return self._sealed(client, call)

    async def find(self, client: Client, elicit_id: str) -> PendingCall | None:
        """See `Pending`."""
        payload = self._seal.open(elicit_id, self._claims(client, 0.0), self._clock())
        if isinstance(payload, Broken):
            return None
        call = CALL_DECODER.decode(payload)
        call.elicit_id = elicit_id
        return call

    async def record(self, client: Client, call: PendingCall, replies: Mapping[str, Reply]) -> PendingCall | None:
        """See `Pending`. Whichever copy comes back, its round runs once."""
        call.stored.journal.replies.update(replies)
        return self._sealed(client, call)

    async def count_attempt(self, client: Client, call: PendingCall) -> int:
        """See `Pending`."""
        log = f"attempts/{call.round_id}"
        return await self._store.append(log, b"", ttl_seconds=self.ttl_seconds, max_entries=1)

    async def close(self, client: Client, call: PendingCall, *, forget: bool = False) -> None:
        """See `Pending`: the claim of its round is all there is."""

    async def reopen(self, client: Client, call: PendingCall) -> None:
        """See `Pending`."""
        self._sealed(client, call)

    async def delivered(self, client: Client, elicit_id: str) -> None:
        """See `Pending`."""

    async def equal(self, client: Client, request: CallRequest) -> PendingCall | None:
        """See `Pending`: every call of a client without a session is its own."""
        return None

    def _sealed(self, client: Client, call: PendingCall) -> PendingCall:
        claims = self._claims(client, call.expires_at)
        call.elicit_id = ""
        call.elicit_id = self._seal.seal(claims, msgspec.json.encode(call), secrets.token_bytes(12))
        return call

    def _claims(self, client: Client, expires_at: float) -> Claims:
        principal = client.profile.principal.name
        return Claims(self._identity.value, self._audience, principal, "tools/call", FALLBACK_TOOL_NAME, "", expires_at)
