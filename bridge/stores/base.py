"""The port behind which everything lives that outlasts one message: keyed bytes with expiry, and logs.

Sessions, pending calls, claims, stored results, question indexes and event logs are all records and logs
of one `Store`. A store knows nothing of them: it is handed keys and bytes. It must not know the protocol.

The contract (proved by `bridge.testing.check_store`, which runs for ours and for a user's):

- Keys and log names are text without NUL and lone surrogates, at most 512 bytes in UTF-8; that is for the
  caller to keep, a store need not check. Their parts are separated by `/`: `session/anon/3f…` belongs to the
  families `session` and `session/anon` (a family is what stands before one of the key's `/`). Order of keys is
  the order of their code points. Records and logs have separate name spaces. Values are bytes.
- Each method is atomic by itself, also against other processes on the same store.
- A version is an integer > 0 that is never used twice for one key, even when the record was taken, expired
  or written again in between: a writer that lost a race always learns it. Nothing is said of its order.
- A record or log whose time is over is as if it had never been, at once, whether or not it has been swept. So
  a log that was over starts again at 1: give a log more time than any of its readers may be away. A time to
  live of 0 or less is over at once.
- A log's sequence numbers rise by 1, and none is used twice for one name: a log that was over goes on past every
  number that it ever had. The oldest entries are trimmed past `max_entries`, and a reader sees the gap:
  `LogPage.first_seq` is the oldest number still there.
- A store that cannot be reached raises `StoreUnavailable` after having waited as long as it was told to, and
  never answers "nothing there" instead. A write that raised it may have happened or not; one that returned
  happened once, and answers for itself (a conditional `put` that was sent twice does not lose to itself).
- A store that has no room raises `StoreFull`, has written nothing, and evicts nothing.
- A handle belongs to one event loop. A call that is cancelled leaves nothing behind but what it wrote.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, Protocol

__all__ = ["STORE_ID", "LogEntry", "LogPage", "Record", "Store", "families_of"]


STORE_ID: Final = "store/id"
"""The key of the random id of a store, made with it: it is another one once the store has lost what it held."""


class Record(NamedTuple):
    """A stored value with the version that a conditional `put` names."""

    value: bytes
    version: int


class LogEntry(NamedTuple):
    """One entry of a log, with its sequence number."""

    seq: int
    value: bytes


class LogPage(NamedTuple):
    """Some entries of a log, oldest first, and the oldest and newest sequence numbers that are still there.

    For a log that is not there they are 1 and 0. A reader whose position is above `last_seq` has outlived the log, or
    the store's data.
    """

    entries: list[LogEntry]
    first_seq: int
    last_seq: int


def families_of(key: str) -> Iterator[str]:
    """Yield the families that `key` belongs to, the widest first."""
    end = key.find("/")
    while end >= 0:
        yield key[:end]
        end = key.find("/", end + 1)


class Store(Protocol):
    """Keyed bytes with expiry, and logs to wait on. See the module's text for the contract."""

    @property
    def shared(self) -> bool:
        """Whether other processes may work on the same store."""
        ...

    @property
    def durable(self) -> bool:
        """Whether what is stored outlives this process."""
        ...

    async def get(self, key: str) -> Record | None:
        """Return the record under `key`, or None."""
        ...

    async def put(
        self, key: str, value: bytes, *, ttl_seconds: float | None, if_version: int | None = None
    ) -> int | None:
        """Write `value` under `key` and return its new version.

        Value and time to live are replaced together; `ttl_seconds` is counted from now (None: for ever). With
        `if_version` the write happens only where the record has that version (0: only where there is none);
        None is returned when it does not.
        """
        ...

    async def take(self, key: str) -> bytes | None:
        """Remove the record under `key` and return its value; of several takers one gets it."""
        ...

    async def append(self, log: str, value: bytes, *, ttl_seconds: float, max_entries: int) -> int:
        """Append `value` to `log` and return its sequence number.

        The log lives `ttl_seconds` from its newest entry; entries past `max_entries` (at least 1) are trimmed,
        oldest first.
        """
        ...

    async def read(self, log: str, *, after: int = 0, limit: int = 100) -> LogPage:
        """Return at most `limit` entries of `log` with a sequence number above `after`."""
        ...

    async def wait(self, logs: Mapping[str, int], timeout_seconds: float) -> set[str]:
        """Wait until one of `logs` has an entry above the given number; return those that have.

        What is already true counts at once, also with a timeout of 0. So does a log that ends below the number (a store
        lost its data): nothing in it has been read. Empty when the time is over. An append by any process wakes
        it. Where nothing could be known for as long as the store waits, it raises StoreUnavailable instead of
        sleeping on.
        """
        ...

    async def scan(self, family: str, *, after: str = "", limit: int = 100) -> list[str]:
        """Return at most `limit` keys of records in `family` that sort after `after`, in order."""
        ...

    async def count(self, family: str) -> int:
        """Return how many records `family` holds (over several nodes: nearly)."""
        ...

    async def aclose(self) -> None:
        """Let go of connections, files and tasks. What is stored stays."""
        ...
