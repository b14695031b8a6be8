"""What another process does in a test: `python -m tests.stores.racer race|append|fork PATH …`."""

import json
import os
import sys
import time

import anyio

from bridge.stores.reader import LogReader
from bridge.stores.sqlite import SqliteStore

TTL = 600


async def race(store: SqliteStore, rounds: int, name: str) -> None:
    """Put over every version of one key that it sees; print the versions it won."""
    won: list[list[int | None]] = []
    while True:
        record = await store.get("key")
        written, version = (int(record.value.split()[0]), record.version) if record else (0, 0)
        if written >= rounds:
            break
        value = f"{written + 1} {name}".encode()
        new = await store.put("key", value, ttl_seconds=TTL, if_version=version)
        if new is not None:
            won.append([written + 1, new])
    print(json.dumps(won))


async def append(store: SqliteStore, number: int) -> None:
    """Append the time, each once the reader has answered the one before."""
    answers = LogReader(store, "answers")
    for seq in range(1, number + 1):
        await answers.next(TTL)
        await anyio.sleep(0.003 * (seq % 7))  # so that the reader's polling is met at all phases
        await store.append("times", str(time.monotonic()).encode(), ttl_seconds=TTL, max_entries=10)


async def put_many(store: SqliteStore, number: int) -> None:
    print(json.dumps([await store.put("key", b"x", ttl_seconds=TTL) for _ in range(number)]), flush=True)


def fork(path: str, number: int) -> None:
    """Fork with a store that is open and has versions in reserve; parent and child print the versions they write."""
    store = SqliteStore(path)
    anyio.run(store._more_versions)
    child = os.fork()
    if child:
        os.waitpid(child, 0)
    anyio.run(put_many, store, number)


async def main(*args: str) -> None:
    what, path, number, *name = args
    store = SqliteStore(path)
    await (race(store, int(number), name[0]) if what == "race" else append(store, int(number)))
    await store.aclose()


if __name__ == "__main__":
    if sys.argv[1] == "fork":
        fork(sys.argv[2], int(sys.argv[3]))
        sys.exit()
    anyio.run(main, *sys.argv[1:])
