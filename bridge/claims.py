"""A round that was answered runs at most once, on whatever node its answers arrive and however often.

The answered round is claimed in the store before it runs. Who comes later with the same answers gets the same
ending: while the round runs by waiting for it, afterwards from the store. Who comes with other answers learns that
it was answered. A round that was cut off is never silently run again. This module knows no route and no revision.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Final, Literal, TypeAlias

import anyio
import msgspec

from bridge.errors import StoreError
from bridge.node import LOOK_SECONDS, Node
from bridge.protocol.messages import INTERNAL_ERROR, encode
from bridge.stores.reader import LogReader
from bridge.upstreams.base import Failed, Finished
from bridge.wanted import Wanted

__all__ = [
    "RESULT_SECONDS",
    "AlreadyAnswered",
    "Claims",
    "Ending",
    "Execution",
    "InputRequired",
    "Interrupted",
    "Released",
]

RESULT_SECONDS: Final = 600.0
"""How long the ending of a round is kept for who sends the same answers again."""

_MAX_RESULT_BYTES: Final = 1024 * 1024
_SHORT_BYTES: Final = 2048
_SETTLE_SECONDS: Final = 5.0
_log = logging.getLogger("bridge.claims")


class InputRequired(msgspec.Struct, frozen=True, tag=True):
    """The call wants more answers: what a modern client gets. Never a legacy one."""

    result: dict[str, object]


Ending: TypeAlias = Finished | Failed | InputRequired
"""How a request for a call ends, before it is shaped for its client."""


class Released(msgspec.Struct, frozen=True):
    """The round did not get past its questions, so that it can be answered again.

    Args:
        reason: why.
        paths: the questions whose answers did not do; those of the others stand.
    """

    reason: str
    paths: tuple[str, ...]


class AlreadyAnswered(msgspec.Struct, frozen=True):
    """The round was answered otherwise, or so long ago that its ending is not kept any more."""


class Interrupted(msgspec.Struct, frozen=True):
    """The round began to run and was cut off. It may have partly run, and is not run again."""


class _Claim(msgspec.Struct, frozen=True, array_like=True):
    """Who has a round, for which answers, and how far it is. A short ending stands here, a long one in a record.

    Who waits for it on another node says so here: only then is anybody to be woken at its end.
    """

    answers: str
    node: str
    state: Literal["running", "done", "interrupted"]
    ending: Ending | None = None
    is_awaited: bool = False


class _Taken(msgspec.Struct, frozen=True):
    """A round that this process has claimed, and the version of that claim."""

    round_id: str
    answers: str
    ttl_seconds: float
    version: int


class Execution:
    """A claimed round that this process runs, or waits for, with everybody who wants its ending."""

    def __init__(self, answers: str, cancel: Callable[[], None]) -> None:
        self.answers = answers
        self.waiters = 1
        self._cancel = cancel
        self._over: anyio.Event | None = None
        self.ending: Ending | Released | AlreadyAnswered | Interrupted = Interrupted()

    def leave(self) -> None:
        """One of those who wait has gone. When the last has, the round is cancelled."""
        self.waiters -= 1
        if self.waiters <= 0:
            self._cancel()

    async def join(self) -> None:
        """Wait until the round is over."""
        if self._over is None:
            self._over = anyio.Event()
        await self._over.wait()

    def end(self) -> None:
        """The round is over."""
        if self._over is not None:
            self._over.set()


class Claims:
    """Runs rounds once.

    Args:
        node: this process, and its store.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._store = node.store
        self._wanted = Wanted(node)
        self._running: dict[str, Execution] = {}
        self._owned: set[str] = set()
        """The rounds that run here."""

    async def once(
        self,
        round_id: str,
        answers: str,
        run: Callable[[], Awaitable[Ending | Released]],
        *,
        ttl_seconds: float,
        repeatable: bool,
        cancel: Callable[[], None],
        joined: Callable[[Callable[[], None]], None],
    ) -> Ending | Released | AlreadyAnswered | Interrupted:
        """Run an answered round, or find out how it ended.

        Args:
            round_id: names the round; random, so that nobody can guess one.
            answers: the digest of the answers.
            run: runs the round. `Released` says that it did not get past its question: the claim is given up.
            ttl_seconds: how long the claim is kept; longer than anybody can present the round again.
            repeatable: whether a round that was cut off may be run again (the tool only reads, or is idempotent).
            cancel: cancels the request that asks for the round.
            joined: told how to leave, for when that request's client has gone: the round is cancelled with the last.

        Returns:
            The ending, the same for everybody with the same answers.
        """
        while (running := self._running.get(round_id)) is not None:
            if running.answers != answers:
                return AlreadyAnswered()
            running.waiters += 1
            joined(_both(running.leave, cancel))
            await running.join()
            if not (repeatable and isinstance(running.ending, Interrupted)):
                return running.ending
        execution = self._running[round_id] = Execution(answers, lambda: self._left_here(round_id, execution, cancel))
        joined(execution.leave)
        try:
            execution.ending = await self._claimed(round_id, answers, run, ttl_seconds, repeatable)
        finally:
            del self._running[round_id]
            execution.end()
        return execution.ending

    async def _claimed(
        self,
        round_id: str,
        answers: str,
        run: Callable[[], Awaitable[Ending | Released]],
        ttl_seconds: float,
        repeatable: bool,
    ) -> Ending | Released | AlreadyAnswered | Interrupted:
        over = LogReader(self._store, f"over/{round_id}")
        replaced, waits = 0, False
        try:
            while True:
                if (version := await self._take(round_id, answers, ttl_seconds, replaced)) is not None:
                    return await self._run_here(_Taken(round_id, answers, ttl_seconds, version), run)
                await over.to_end()
                record = await self._store.get(_key(round_id))
                replaced = 0
                if record is None:
                    continue
                claim = _claim_decoder.decode(record.value)
                if claim.answers != answers:
                    return AlreadyAnswered()
                if claim.state == "done":
                    return claim.ending or await self._long_ending(round_id) or AlreadyAnswered()
                if claim.state == "running" and claim.node != self._node.id and await self._node.is_alive(claim.node):
                    if not waits:
                        waits = True
                        await self._wanted.come(round_id)
                    if await self._await(round_id, claim, record.version, ttl_seconds):
                        await over.next(LOOK_SECONDS)
                    continue
                # Cut off: its node is lost, or it was cancelled there.
                if not repeatable:
                    return Interrupted()
                replaced = record.version
        finally:
            if waits:
                await self._wanted.leave(round_id)

    async def _run_here(self, taken: _Taken, run: Callable[[], Awaitable[Ending | Released]]) -> Ending | Released:
        self._owned.add(taken.round_id)
        try:
            return await self._run(taken, run)
        finally:
            self._owned.discard(taken.round_id)

    def _left_here(self, round_id: str, execution: "Execution", cancel: Callable[[], None]) -> None:
        """Nobody waits here for a round any more. It is cancelled, unless it runs here and others wait elsewhere."""
        if round_id in self._owned and self._store.shared and self._node.running:
            self._node.spawn(self._cancel_unwanted, round_id, execution, cancel)
        else:
            cancel()

    async def _cancel_unwanted(self, round_id: str, execution: "Execution", cancel: Callable[[], None]) -> None:
        try:
            await self._wanted.until_nobody(round_id)
        except StoreError as error:
            _log.warning("round %s is cancelled; who waits for it is not known: %s", round_id, error)
        if execution.waiters <= 0:
            cancel()

    async def _await(self, round_id: str, claim: _Claim, version: int, ttl_seconds: float) -> bool:
        """Say that somebody waits for a round that runs elsewhere; False where its claim has changed meanwhile."""
        if claim.is_awaited:
            return True
        marked = encode(msgspec.structs.replace(claim, is_awaited=True))
        return await self._store.put(_key(round_id), marked, ttl_seconds=ttl_seconds, if_version=version) is not None

    async def _take(self, round_id: str, answers: str, ttl_seconds: float, replaced: int) -> int | None:
        """Claim a round where there is no claim, or in place of one; nobody is left to wonder who has it."""
        mine = encode(_Claim(answers, self._node.id, "running"))
        key = _key(round_id)
        if not self._store.shared:
            # A store in this process answers at once: nobody can leave meanwhile.
            return await self._store.put(key, mine, ttl_seconds=ttl_seconds, if_version=replaced)
        version: int | None = None
        with anyio.CancelScope(shield=True):
            version = await self._store.put(key, mine, ttl_seconds=ttl_seconds, if_version=replaced)
        try:
            await anyio.lowlevel.checkpoint_if_cancelled()
        except BaseException:
            if version is not None:
                await self._settle(_Taken(round_id, answers, ttl_seconds, version), None)
            raise
        return version

    async def _run(self, taken: _Taken, run: Callable[[], Awaitable[Ending | Released]]) -> Ending | Released:
        answers, node = taken.answers, self._node.id
        try:
            ending = await run()
        except BaseException:
            await self._settle(taken, _Claim(answers, node, "interrupted"))
            raise
        if isinstance(ending, Released):
            await self._settle(taken, None)
            return ending
        try:
            value = encode(ending)
        except (UnicodeEncodeError, OverflowError, ValueError, TypeError) as error:
            _log.error("the ending of round %s cannot be sent: %s", taken.round_id, error)
            ending = Failed(INTERNAL_ERROR, "The result cannot be sent; its details are in the server's log")
            value = encode(ending)
        if len(value) <= _SHORT_BYTES:
            await self._settle(taken, _Claim(answers, node, "done", ending))
        else:
            await self._settle(taken, _Claim(answers, node, "done"), value)
        return ending

    async def _settle(self, taken: _Taken, claim: _Claim | None, ending: bytes | None = None) -> None:
        """Say how a round ended, also when it was cancelled; where the store is away, as soon as it is back."""
        if not self._store.shared:
            await self._write(taken, claim, ending)
            return
        with anyio.move_on_after(_SETTLE_SECONDS, shield=True):
            try:
                await self._write(taken, claim, ending)
                return
            except StoreError as error:
                _log.warning("round %s is over, and the store does not take it: %s", taken.round_id, error)
        if self._node.running:
            self._node.spawn(self._write_later, taken, claim, ending)

    async def _write_later(self, taken: _Taken, claim: _Claim | None, ending: bytes | None) -> None:
        deadline = anyio.current_time() + taken.ttl_seconds
        while anyio.current_time() < deadline:
            try:
                await self._write(taken, claim, ending)
                return
            except StoreError:
                await anyio.sleep(_SETTLE_SECONDS)

    async def _write(self, taken: _Taken, claim: _Claim | None, ending: bytes | None) -> None:
        key, ttl = _key(taken.round_id), taken.ttl_seconds
        if ending is not None and len(ending) <= _MAX_RESULT_BYTES:
            await self._store.put(_result_key(taken.round_id), ending, ttl_seconds=RESULT_SECONDS)
        value = None if claim is None else encode(claim)
        if value is not None and await self._store.put(key, value, ttl_seconds=ttl, if_version=taken.version):
            return  # nobody has touched the claim: nobody waits
        record = await self._store.get(key)
        if record is None or _claim_decoder.decode(record.value).node != self._node.id:
            _log.warning("round %s was taken for lost here: another node has it, or nobody", taken.round_id)
            return
        if value is None:
            await self._store.take(key)
        else:
            # Only somebody who waits has marked it meanwhile, and that happens once.
            await self._store.put(key, value, ttl_seconds=ttl, if_version=record.version)
        if self._store.shared:
            log = f"over/{taken.round_id}"
            await self._store.append(log, b"", ttl_seconds=RESULT_SECONDS, max_entries=1)

    async def ending(self, round_id: str) -> Ending | None:
        """How a round that is over ended, for who waited for it elsewhere; None where that is not kept."""
        record = await self._store.get(_key(round_id))
        claim = None if record is None else _claim_decoder.decode(record.value)
        if claim is None or claim.state != "done":
            return None
        return claim.ending or await self._long_ending(round_id)

    async def _long_ending(self, round_id: str) -> Ending | None:
        record = await self._store.get(_result_key(round_id))
        return None if record is None else _ending_decoder.decode(record.value)


def _key(round_id: str) -> str:
    """Of no family: claims are neither counted nor listed, and a store need not keep them in order."""
    return f"claim:{round_id}"


def _result_key(round_id: str) -> str:
    return f"result:{round_id}"


def _both(first: Callable[[], None], second: Callable[[], None]) -> Callable[[], None]:
    def call() -> None:
        first()
        second()

    return call


_claim_decoder: Final = msgspec.json.Decoder(_Claim)
_ending_decoder: Final[msgspec.json.Decoder[Ending]] = msgspec.json.Decoder(Ending)
