"""The proof of the store's contract, for our stores and for a user's: each rule of `base.py` as a check.

It knows the port only. It must not know any store, nor sleep for anything but an expiry.
"""

import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio

from bridge.stores.base import LogEntry, LogPage, Record, Store

__all__ = ["check_store"]

LONG_SECONDS = 600  # lives as long as the check
SHORT_SECONDS = 0.05  # is waited for
WAKE_SECONDS = 5  # a wait that takes so long was not woken
RULE_SECONDS = 60  # a check that takes so long hangs
RACERS = 30
STRANGE_NAMES = (
    "ö/ü/日本",
    "a b/c d",
    "x:y/z",
    "{a}/}b{/{}",
    "100%/%s/%41",
    "'\"/\\;--",
    "fam0",
    "[a-z]*/?",
    "😀/😀",
)


async def check_store(
    make: Callable[[], Awaitable[Store]], *, advance: Callable[[float], Awaitable[None]] | None = None
) -> None:
    """Prove that a store keeps the contract of `bridge.stores.base`.

    Args:
        make: opens a store. Where the store says that it is `shared`, it is called twice and must return two
            handles on the same data; each is closed at the end. The data need not be empty before, and what the
            check writes has random names.
        advance: moves the store's clock by so many seconds; without it the check waits for short expiries.

    Raises:
        AssertionError: the sentence says which rule was broken.
    """
    one = await make()
    try:
        two = await make() if one.shared else one
        try:
            for rule in RULES:
                await _prove(rule, _Subject(one, two, advance))
        finally:
            if two is not one:
                await two.aclose()
    finally:
        await one.aclose()


class _Subject:
    """Two handles on a store (maybe the same), a family of names of its own, and a way to let time pass."""

    def __init__(self, one: Store, two: Store, advance: Callable[[float], Awaitable[None]] | None = None) -> None:
        self.one, self.two, self._advance = one, two, advance
        self.family = f"check-{secrets.token_hex(8)}"

    def name(self, rest: str) -> str:
        return f"{self.family}/{rest}"

    async def put(self, rest: str, value: bytes, ttl: float | None = LONG_SECONDS, **condition: int) -> int:
        version = await self.one.put(self.name(rest), value, ttl_seconds=ttl, **condition)
        _require(type(version) is int and version > 0, f"put returns a version above 0, not {version!r}")
        return version or 0

    async def append(self, rest: str, value: bytes = b"", ttl: float = LONG_SECONDS, most: int = 100) -> int:
        return await self.two.append(self.name(rest), value, ttl_seconds=ttl, max_entries=most)

    async def outlive(self) -> None:
        """Let pass what `SHORT_SECONDS` lives."""
        await (self._advance or anyio.sleep)(SHORT_SECONDS * 1.5)


async def _prove(rule: Callable[[_Subject], Awaitable[None]], subject: _Subject) -> None:
    with anyio.move_on_after(RULE_SECONDS):
        await rule(subject)
        return
    _require(False, f"a call does not return: the check {rule.__name__!r} is not over in {RULE_SECONDS} s")


def _require(holds: bool, sentence: str) -> None:
    if not holds:
        raise AssertionError(f"the store breaks its contract: {sentence}")


def _same(found: object, expected: object, sentence: str) -> None:
    _require(found == expected, f"{sentence}: found {found!r:.200}, expected {expected!r:.200}")


async def _together(calls: list[Callable[[], Awaitable[Any]]]) -> list[Any]:
    """Call all at once; return what they return."""
    results: list[Any] = [None] * len(calls)

    async def call(place: int) -> None:
        results[place] = await calls[place]()

    async with anyio.create_task_group() as group:
        for place in range(len(calls)):
            group.start_soon(call, place)
    return results


async def _records(s: _Subject) -> None:
    _same(await s.two.get(s.name("a")), None, "get of a key that never was returns None")
    for value in (b"", b" \x00\xff\r\n", secrets.token_bytes(1 << 20)):
        version = await s.put("a", value)
        _same(await s.two.get(s.name("a")), Record(value, version), "get returns what was put, and its version")
    _same(await s.two.take(s.name("a")), value, "take returns the value")
    _same(await s.one.get(s.name("a")), None, "what was taken is gone")
    _same(await s.one.take(s.name("a")), None, "a second take returns None")


async def _conditions(s: _Subject) -> None:
    async def put(value: bytes, if_version: int) -> int | None:
        return await s.two.put(s.name("a"), value, ttl_seconds=LONG_SECONDS, if_version=if_version)

    _same(await put(b"x", 7), None, "put with a version does nothing where there is no record")
    first = await s.put("a", b"1", if_version=0)
    _same(await put(b"x", 0), None, "put with if_version=0 does nothing where there is a record")
    second = await s.put("a", b"2", if_version=first)
    _same(await put(b"x", first), None, "put with an old version does nothing")
    _same(await s.one.get(s.name("a")), Record(b"2", second), "a put that lost the race changes nothing")


async def _races(s: _Subject) -> None:
    def racer(store: Store, value: bytes, if_version: int) -> Callable[[], Awaitable[int | None]]:
        return lambda: store.put(s.name("a"), value, ttl_seconds=LONG_SECONDS, if_version=if_version)

    version = 0
    for _ in range(3):
        racers = [racer((s.one, s.two)[i % 2], b"%d" % i, version) for i in range(RACERS)]
        won = {i: result for i, result in enumerate(await _together(racers)) if result is not None}
        _same(len(won), 1, f"of {RACERS} puts at once with the same if_version one wins")
        ((winner, version),) = won.items()
        _same(await s.one.get(s.name("a")), Record(b"%d" % winner, version), "the value is the winner's")
    takers: list[Callable[[], Awaitable[Any]]] = [lambda: s.one.take(s.name("a")), lambda: s.two.take(s.name("a"))]
    taken = await _together(takers * (RACERS // 2))
    _same(sum(value is not None for value in taken), 1, f"of {RACERS} takers at once one gets the record")


async def _versions(s: _Subject) -> None:
    seen = [await s.put("a", b"1"), await s.put("a", b"2"), await s.put("b", b"other")]
    await s.two.take(s.name("a"))
    seen.append(await s.put("a", b"3", ttl=SHORT_SECONDS))
    await s.outlive()
    seen.append(await s.put("a", b"4", if_version=0))
    for old in {*seen[:2], seen[3]}:
        lost = await s.two.put(s.name("a"), b"x", ttl_seconds=LONG_SECONDS, if_version=old)
        _same(lost, None, "a version is not used again after the record was taken or over")


async def _expiry(s: _Subject) -> None:
    version = await s.put("a", b"1", ttl=SHORT_SECONDS)
    await s.put("renewed", b"2", ttl=SHORT_SECONDS)
    await s.put("renewed", b"2")
    await s.put("for ever", b"3", ttl=None)
    await s.put("shortened", b"4")
    await s.put("shortened", b"4", ttl=SHORT_SECONDS)
    await s.put("at once", b"5", ttl=0)
    _same(await s.two.get(s.name("at once")), None, "a record with a ttl of 0 is over at once")
    await s.outlive()
    _same(await s.two.count(s.family), 2, "count leaves out what is over")
    _same(await s.two.scan(s.family), [s.name("for ever"), s.name("renewed")], "scan leaves out what is over")
    _same(await s.two.get(s.name("shortened")), None, "the newest ttl counts, also a shorter one")
    _same(await s.two.take(s.name("a")), None, "take finds nothing that is over")
    lost = await s.two.put(s.name("a"), b"x", ttl_seconds=LONG_SECONDS, if_version=version)
    _same(lost, None, "put with the version of a record that is over does nothing")
    await s.put("a", b"6", if_version=0)


async def _families(s: _Subject) -> None:
    keys = sorted(f"{s.family}/in/{part}" for part in ("", "B", "a", "a/b", "a0", "b", "é", "日", "\uffee", "😀"))
    beside = [f"{s.family}/in", f"{s.family}/in0", f"{s.family}/in-/a", f"{s.family}/i/n", f"{s.family}/IN/a"]
    for key in [*reversed(keys), *beside, *keys]:
        await s.one.put(key, b"", ttl_seconds=LONG_SECONDS)
    family = f"{s.family}/in"
    _same(await s.two.count(family), len(keys), "count counts each record below the family once")
    _same(await s.two.count(s.family), len(keys) + len(beside), "a record belongs to all families above it")
    _same(await s.two.scan(family), keys, "scan returns the family's keys in the order of code points")
    found: list[str] = []
    after = ""
    while page := await s.two.scan(family, after=after, limit=3):
        _require(len(page) <= 3, "scan returns at most `limit` keys")
        found, after = found + page, page[-1]
    _same(found, keys, "pages of scan, each after the last key of the one before, hold every key once")
    _same(await s.two.scan(family, after=f"{family}/a/"), keys[3:], "`after` need not be a key that is there")
    await s.two.take(keys[0])
    _same(await s.one.count(family), len(keys) - 1, "what was taken does not count")
    _same(await s.one.scan(family, limit=1), [keys[1]], "what was taken is not scanned")
    nothing = (await s.one.count(f"{s.family}/no"), await s.one.scan(f"{s.family}/no"))
    _same(nothing, (0, []), "an unknown family is empty")


async def _logs(s: _Subject) -> None:
    log = s.name("log")
    _same(await s.one.read(log), LogPage([], 1, 0), "a log that never was is empty: it starts at 1 and ends at 0")
    await s.put("log", b"a record")
    values = [b"", b"\x00 2", secrets.token_bytes(1 << 20), b"4", b"5"]
    numbers = [await s.append("log", value) for value in values]
    first, last = numbers[0], numbers[-1]
    _require(first >= 1, "numbers are at least 1")
    _same(numbers, list(range(first, first + 5)), "numbers rise by 1")
    entries = [LogEntry(seq, value) for seq, value in enumerate(values, first)]
    _same(await s.one.read(log), LogPage(entries, first, last), "read returns what was appended, oldest first")
    page = await s.one.read(log, after=first + 1, limit=2)
    _same(page, LogPage(entries[2:4], first, last), "read heeds `after` and `limit`")
    _same(await s.one.read(log, after=last), LogPage([], first, last), "read past the end is empty")
    numbers = sorted(await _together([lambda: s.append("many")] * RACERS))
    _same(numbers, list(range(numbers[0], numbers[0] + RACERS)), "appends at once get each number once")
    _same(await s.one.take(log), b"a record", "records and logs have separate name spaces")


async def _trimming(s: _Subject) -> None:
    numbers = [await s.append("log", b"%d" % number, most=3) for number in range(1, 6)]
    kept = [LogEntry(seq, b"%d" % number) for number, seq in enumerate(numbers, 1)][2:]
    page = await s.one.read(s.name("log"), after=numbers[0])
    _same(page, LogPage(kept, numbers[2], numbers[4]), "a log is trimmed and shows the gap")
    newest = await s.append("log", b"6", most=1)
    _same(newest, numbers[4] + 1, "numbers go on after trimming")
    page = await s.one.read(s.name("log"))
    _same(page, LogPage([LogEntry(newest, b"6")], newest, newest), "the newest max_entries counts")


async def _log_expiry(s: _Subject) -> None:
    await s.append("over")
    before = await s.append("over", ttl=SHORT_SECONDS)
    await s.append("renewed", ttl=SHORT_SECONDS)
    await s.append("renewed")
    await s.outlive()
    _same(await s.one.wait({s.name("over"): 0}, 0), set(), "nobody is told of a log that is over")
    _same(await s.one.read(s.name("over")), LogPage([], 1, 0), "a log that is over is as if it had never been")
    number = await s.append("over", b"new")
    _require(number > before, "a number is never used twice, also when the log was over in between")
    page = await s.one.read(s.name("over"))
    _same(page, LogPage([LogEntry(number, b"new")], number, number), "nothing old is in a new log")
    _same(await s.one.wait({s.name("over"): before}, 0), {s.name("over")}, "who read the old log hears of the new")
    renewed = await s.one.read(s.name("renewed"))
    _same(len(renewed.entries), 2, "each append renews the whole log")


async def _waiting(s: _Subject) -> None:
    a, b = s.name("a"), s.name("b")
    for timeout in (0, 0.01):
        _same(await s.one.wait({a: 0, b: 0}, timeout), set(), "wait returns nothing when the time is over")
    only = await s.append("a")
    _same(await s.one.wait({a: 0, b: 0}, 0), {a}, "what is already true counts, also with a timeout of 0")
    _same(await s.one.wait({a: only}, 0.01), set(), "an entry that is not above the number does not count")
    _same(await s.one.wait({a: only + 9}, 0), {a}, "a log that ends below the number has not been read, and counts")
    await s.append("b", most=1)
    _same(await _told(s.one, {a: 0, b: 0}), {a, b}, "wait returns all logs that have news")


async def _told(store: Store, logs: Mapping[str, int]) -> set[str]:
    """Wait for news that are there or will soon be."""
    with anyio.move_on_after(WAKE_SECONDS):
        return await store.wait(logs, 2 * WAKE_SECONDS)
    _require(False, f"wait returns as soon as there are news, not after {WAKE_SECONDS} s")
    return set()


async def _woken(s: _Subject, waiting: list[Mapping[str, int]], append: Callable[[], Awaitable[Any]]) -> list[Any]:
    """Start a wait for each of `waiting`, then `append`; return what the waits return."""

    async def append_last() -> None:
        await anyio.wait_all_tasks_blocked()
        await append()

    waits = [lambda logs=logs: _told(s.one, logs) for logs in waiting]
    return (await _together([*waits, append_last]))[:-1]


async def _wakes(s: _Subject) -> None:
    a, b = s.name("a"), s.name("b")

    async def by_its_own_handle() -> None:
        await s.one.append(a, b"", ttl_seconds=LONG_SECONDS, max_entries=1)

    async def beside_and_then_there() -> None:
        await s.append("c")
        await s.append("b")

    for _ in range(5):
        ends = {log: (await s.one.read(log)).last_seq for log in (a, b)}
        _same(await _woken(s, [ends], by_its_own_handle), [{a}], "an append wakes who waits for it")
        ends[a] = (await s.one.read(a)).last_seq
        woken = await _woken(s, [ends], beside_and_then_there)
        _same(woken, [{b}], "an append by another handle wakes who waits for it, and for that log only")


async def _crowd(s: _Subject) -> None:
    logs = [s.name(f"{i}") for i in range(RACERS)]

    async def append_to_each() -> None:
        await _together([lambda i=i: s.append(f"{i}") for i in range(RACERS)])  # type: ignore[misc]

    woken = await _woken(s, [{log: 0} for log in logs for _ in range(3)], append_to_each)
    _same(woken, [{log} for log in logs for _ in range(3)], "each of many waiters is woken for its log")


async def _cancelled(s: _Subject) -> None:
    a = s.name("a")

    async def wait_until_cancelled(scope: anyio.CancelScope) -> set[str] | None:
        with scope:
            return await _told(s.one, {a: 0})
        return None

    scopes = [anyio.CancelScope() for _ in range(3)]
    waits = [lambda scope=scope: wait_until_cancelled(scope) for scope in scopes]

    async def cancel_then_append() -> None:
        await anyio.wait_all_tasks_blocked()
        for scope in scopes:
            scope.cancel()
        await s.append("a")

    *_, kept, _ = await _together([*waits, lambda: _told(s.one, {a: 0}), cancel_then_append])
    _same(kept, {a}, "a waiter is woken although those before it were cancelled")


async def _strange_names(s: _Subject) -> None:
    for number, strange in enumerate(STRANGE_NAMES, 1):
        value = strange.encode()
        version = await s.put(strange, value)
        _same(await s.two.get(s.name(strange)), Record(value, version), f"the key {strange!r} works")
        seq = await s.append(strange, value)
        page = await s.one.read(s.name(strange))
        _same(page, LogPage([LogEntry(seq, value)], seq, seq), f"the log {strange!r} is one of its own")
        _same(await s.one.wait({s.name(strange): 0}, 0), {s.name(strange)}, f"wait works on {strange!r}")
        _same(await s.two.count(s.family), number, f"the key {strange!r} is one of its own")
        above = s.name(strange).rpartition("/")[0]
        _require(s.name(strange) in await s.two.scan(above), f"scan finds {strange!r} in its family")
    longest = s.name("é" * ((512 - len(s.family) - 1) // 2))
    await s.one.put(longest, b"long", ttl_seconds=LONG_SECONDS)
    _same(await s.two.take(longest), b"long", "a key may have 512 bytes")


RULES = (
    _records,
    _conditions,
    _races,
    _versions,
    _expiry,
    _families,
    _logs,
    _trimming,
    _log_expiry,
    _waiting,
    _wakes,
    _crowd,
    _cancelled,
    _strange_names,
)
