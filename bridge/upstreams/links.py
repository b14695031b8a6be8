"""The port to a server that somebody else wrote: how it is reached, what a way to it can do, what comes back on it.

A `Server` is what is wrapped. A `Link` is one way to it: the session of a legacy server, or simply the means to reach
one that has no sessions. A `Talk` is one request under way on a link: it takes what the server says meanwhile, above
all what it asks. A link knows no route, no hold and no client: only who says hello.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Literal, Protocol, TypeAlias

import msgspec

from bridge.protocol.messages import Json
from bridge.protocol.revisions import Revision
from bridge.upstreams.base import Failed, Finished

__all__ = ["ASKS", "Facts", "Hello", "Link", "News", "Server", "Sharing", "Talk"]

ASKS: Final = frozenset({"elicitation/create", "sampling/createMessage", "roots/list"})
"""The requests by which a legacy server asks."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What a server says of itself when it is first met.

    Args:
        revision: the revision that is spoken with it.
        capabilities: its server capabilities.
        info: its `serverInfo`.
        instructions: how to use it, for models.
    """

    revision: Revision
    capabilities: Json
    info: Json
    instructions: str | None = None


class Hello(msgspec.Struct, frozen=True, kw_only=True):
    """Who a link speaks for, as its server is told.

    Args:
        capabilities: the client capabilities to declare.
        info: the `clientInfo` to give.
    """

    capabilities: Json
    info: Json


class Talk(Protocol):
    """One request under way: what takes the server's messages about it, besides the reply."""

    @property
    def wants_progress(self) -> bool:
        """Whether anybody wants to hear of progress."""
        ...

    @property
    def log_level(self) -> str | None:
        """The lowest level of log messages that is wanted, or None for none."""
        ...

    @property
    def is_waiting(self) -> bool:
        """Whether it waits for a person: its server has asked, and has no answer yet."""
        ...

    @property
    def http(self) -> Mapping[str, Any] | None:
        """The ASGI scope of the client's request, for servers in this process that look at it; None: there is none."""
        ...

    async def ask(self, method: str, params: Json) -> Finished | Failed:
        """Take a question of the server (one of `ASKS`), and return its answer, however long that takes.

        Returns:
            The result of the request that asks, or the error that answers it.
        """
        ...

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Take a report of progress."""
        ...

    async def log(self, level: str, data: Any, logger: str | None) -> None:
        """Take a log message."""
        ...


News: TypeAlias = Callable[[str, Json], Awaitable[None]]
"""Takes a server's notification that belongs to no request: its method and params, such as
`notifications/tools/list_changed`, `notifications/resources/updated`, `notifications/elicitation/complete`."""


Sharing: TypeAlias = Literal["own", "same", "all"]
"""Who shares a link. `own`: a session has one of its own, and so have a principal's modern calls. `same`: all callers
that declare the same, since the server keeps nothing between requests. `all`: everybody."""


class Link(Protocol):
    """One way to a server."""

    @property
    def facts(self) -> Facts:
        """What the server said of itself on this link."""
        ...

    @property
    def is_open(self) -> bool:
        """Whether requests can be made; once False, it stays so, and another link has to be made."""
        ...

    @property
    def names_requests(self) -> bool:
        """Whether what the server asks comes with the request that it belongs to."""
        ...

    async def request(self, method: str, params: Json, talk: Talk | None = None) -> Finished | Failed:
        """Make a request and return how it ended. Cancelled, it tells the server so, and only then ends.

        Args:
            method: the method, such as `tools/call`.
            params: its params. A link adds what its revision and transport want in `_meta`, progress token included,
                and changes nothing else.
            talk: takes what the server says meanwhile; None: nothing is expected, and questions are refused.

        Returns:
            The result as it came (with `resultType` and the like where the server is modern), or the server's error.

        Raises:
            UpstreamUnreachable: the server did not get it.
            UpstreamLost: the server may have got it, and its reply will not come.
        """
        ...

    async def notify(self, method: str, params: Json) -> None:
        """Send a notification; where that cannot be done, it is dropped."""
        ...

    async def aclose(self) -> None:
        """End the link, in bounded time: requests under way are cancelled at the server first, then it is closed."""
        ...


class Server(Protocol):
    """What is wrapped, as something that can be reached."""

    @property
    def name(self) -> str:
        """How to call it in a log: a URL without credentials, a command's name, a class."""
        ...

    @property
    def sharing(self) -> Sharing:
        """Who shares a link to it; known once it is started."""
        ...

    def asks_midway(self, method: str, target: str) -> bool:
        """Whether it may ask in the middle of a call; known once it is started. Where it does not, what it says of a
        call comes at that call's own pace: a client that takes reports slowly keeps nobody else waiting.

        Args:
            method: `tools/call`, `prompts/get` or `resources/read`.
            target: the name or URI that is called.
        """
        ...

    async def start(self, spawn: Callable[..., None]) -> None:
        """Make ready to connect: find out the era, enter a lifespan that is entered once.

        Args:
            spawn: starts a task that ends with the process.

        Raises:
            UpstreamUnreachable: it cannot be reached, or is no MCP server. The text says why in one line.
        """
        ...

    async def connect(self, hello: Hello, news: News) -> Link:
        """Make a link.

        Args:
            hello: who it speaks for.
            news: takes what belongs to no request.

        Raises:
            UpstreamUnreachable: it cannot be made. The text says why in one line.
        """
        ...

    async def aclose(self) -> None:
        """End what `start` began. Links are closed before."""
        ...
