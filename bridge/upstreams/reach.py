"""The links to a wrapped server, by who calls: one for each legacy session, one for a principal's modern calls.

Links are made when they are first needed, closed with their session or when nothing has used them for long, and
made anew where they have broken. This module knows no call.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias

import anyio
import msgspec

from bridge.asking.form import digest
from bridge.errors import RemoteError, UpstreamUnreachable
from bridge.protocol.inbound import LOG_LEVELS
from bridge.protocol.messages import Json
from bridge.protocol.revisions import Era
from bridge.upstreams.base import Caller, Failed, Finished
from bridge.upstreams.links import Hello, Link, News, Server

__all__ = ["INFO", "LinkLimits", "Links", "Reached"]

INFO: Final[Json] = {"name": "mcp-session-bridge", "version": "0.1.0"}
"""How the bridge calls itself where it speaks for several clients."""

_ELICITATION: Final[Json] = {"form": {}, "url": {}}
_LOOK_SECONDS: Final = 15.0
_MAX_SUBSCRIBED: Final = 10_000
_log = logging.getLogger("bridge.upstream")

Key: TypeAlias = tuple[Any, ...]


class LinkLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How many links there may be and how long unused ones live.

    Args:
        in_all: how many; past it the one that was unused for longest is closed.
        idle_seconds: how long one lives that nothing uses.
    """

    in_all: int = 1000
    idle_seconds: float = 1800.0


class Reached:
    """A way to the server that callers share or one has alone: its link, made anew where that has broken.

    Args:
        key: what its callers have in common.
    """

    def __init__(self, key: Key) -> None:
        self.name = digest(list(map(str, key)))
        """A name that no other has."""
        self.making = anyio.Lock()
        self.made: Link | None = None
        self.users = 0
        """How many calls are under way on it."""
        self.used_at = anyio.current_time()
        self._log_level: str | None = None
        self._subscribed: set[str] = set()

    @property
    def link(self) -> Link:
        """The link; there once `Links.get` has given this out."""
        assert self.made is not None
        return self.made

    async def request(self, method: str, params: Json) -> Finished | Failed:
        """Make a request beside calls, and remember what it sets up in the server's session."""
        reply = await self.link.request(method, params)
        if isinstance(reply, Finished):
            if method == "logging/setLevel":
                self._log_level = params["level"]
            elif method == "resources/subscribe" and len(self._subscribed) < _MAX_SUBSCRIBED:
                self._subscribed.add(params["uri"])
            elif method == "resources/unsubscribe":
                self._subscribed.discard(params["uri"])
        return reply

    def recall(self, caller: Caller) -> None:
        """Set up the first link for a session as that has it: it may have had one before a restart, or elsewhere."""
        self._log_level = caller.log_level
        self._subscribed.update(caller.subscriptions)

    async def remake(self, link: Link) -> None:
        """Use another link from now on, set up as the one before it was."""
        self.made, level, self._log_level = link, self._log_level, None
        try:
            if level is not None:
                await self.want_log(level)
            for uri in sorted(self._subscribed):
                await link.request("resources/subscribe", {"uri": uri})
        except RemoteError as error:
            _log.warning("a session with a server is not set up as the one before it: %s", error)

    async def want_log(self, level: str) -> None:
        """Have a legacy server, which knows one level for its session, send at least what is wanted now."""
        facts = self.link.facts
        if facts.revision.era is Era.MODERN or "logging" not in facts.capabilities:
            return
        if self._log_level is None or LOG_LEVELS.index(level) < LOG_LEVELS.index(self._log_level):
            await self.request("logging/setLevel", {"level": level})


class Links:
    """Finds the link for a caller.

    Args:
        server: what is wrapped; it is started.
        news: makes what takes the news of one link, from the link's name and its caller's session id (empty where
            several share it).
        limits: how many, how long.
        declare: `all`: elicitation is declared whatever the caller declares, since every route answers or refuses it.
            `caller`: exactly what the caller declares.
        elicitation: whether users may be asked at all.
        processes: over how many links the calls are spread that share one.
    """

    def __init__(
        self,
        server: Server,
        news: Callable[[str, str], News],
        limits: LinkLimits,
        *,
        declare: Literal["all", "caller"] = "all",
        elicitation: bool = True,
        processes: int = 1,
    ) -> None:
        self._server = server
        self._sharing = server.sharing
        self._now = asyncio.get_running_loop().time
        self._news = news
        self._limits = limits
        self._declare = declare
        self._elicitation = elicitation
        self._processes = processes
        self._links: OrderedDict[Key, Reached] = OrderedDict()

    def at_hand(self, caller: Caller) -> Reached | None:
        """The way to the server for a caller, if its link is there and open."""
        key = self._key(caller)
        reached = self._links.get(key)
        if reached is None or reached.made is None or not reached.made.is_open:
            return None
        reached.used_at = self._now()
        self._links.move_to_end(key)
        return reached

    async def get(self, caller: Caller) -> Reached:
        """The way to the server for a caller; its link is made now if need be.

        Raises:
            UpstreamUnreachable: it cannot be made.
        """
        at_hand = self.at_hand(caller)
        if at_hand is not None:
            return at_hand
        key = self._key(caller)
        reached = self._links.get(key)
        if reached is None:
            await self._make_room()
            reached = self._links.setdefault(key, Reached(key))
        reached.used_at = self._now()
        self._links.move_to_end(key)
        await self._make(reached, caller)
        return reached

    async def _make(self, reached: Reached, caller: Caller) -> None:
        async with reached.making:
            if reached.made is not None:
                if reached.made.is_open:
                    return
                await reached.made.aclose()
            is_own = self._sharing == "own" and bool(caller.id)
            hello = Hello(
                capabilities=self._capabilities(caller), info=(caller.profile.info or INFO) if is_own else INFO
            )
            if is_own and reached.made is None:
                reached.recall(caller)
            link = await self._server.connect(hello, self._news(reached.name, caller.id if is_own else ""))
            await reached.remake(link)

    def _capabilities(self, caller: Caller) -> Json:
        """What is declared to the server on behalf of a caller."""
        declared: Json = {"elicitation": _ELICITATION} if self._elicitation else {}
        if self._sharing == "all":
            return declared
        capabilities = caller.profile.capabilities
        if self._declare == "caller":
            return {name: capabilities[name] for name in _MIRRORED if name in capabilities}
        return declared | {name: capabilities[name] for name in ("sampling", "roots") if name in capabilities}

    def _key(self, caller: Caller) -> Key:
        """What callers have in common that share a link; of several such links, the one with the fewest users."""
        key: Key
        if self._sharing == "own" and caller.id:
            return ("session", caller.id)
        said = self._declared(caller)
        key = ("principal", caller.profile.principal.name, said) if self._sharing == "own" else (self._sharing, said)
        if self._processes == 1:
            return key
        keys = [(*key, number) for number in range(self._processes)]
        return min(keys, key=lambda one: self._links[one].users if one in self._links else 0)

    def _declared(self, caller: Caller) -> str:
        """A short text for what is declared on behalf of a caller; the same for nearly all."""
        capabilities = caller.profile.capabilities
        if self._declare == "all" and "sampling" not in capabilities and "roots" not in capabilities:
            return ""
        return digest(self._capabilities(caller))

    async def _make_room(self) -> None:
        while len(self._links) >= self._limits.in_all:
            key = next((key for key, reached in self._links.items() if not reached.users and reached.made), None)
            if key is None:
                raise UpstreamUnreachable(f"{self._limits.in_all} sessions with it are in use, which is the limit")
            await self._end(key)

    async def end_session(self, session_id: str) -> None:
        """Close the link of a session that has ended."""
        await self._end(("session", session_id))

    async def _end(self, key: Key) -> None:
        reached = self._links.pop(key, None)
        if reached is not None and reached.made is not None:
            await reached.made.aclose()

    async def watch(self) -> None:
        """Close what nothing has used for long, for as long as the process serves."""
        while True:
            await anyio.sleep(_LOOK_SECONDS)
            before = anyio.current_time() - self._limits.idle_seconds
            for key in [key for key, known in self._links.items() if not known.users and known.used_at < before]:
                _log.info("a session with %s is closed: nothing has used it for long", self._server.name)
                await self._end(key)

    async def aclose(self) -> None:
        """Close every link."""
        async with anyio.create_task_group() as tasks:
            for key in list(self._links):
                tasks.start_soon(self._end, key)


_MIRRORED: Final = ("elicitation", "sampling", "roots")
