"""`Tester`: the client that the fixtures give. It watches what runs behind the server, so that a test can say more."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from bridge.app import Bridge
from bridge.asking.routes import RouteName, choose
from bridge.kinds import KINDS, ClientKind
from bridge.protocol.messages import Json
from bridge.testing.answers import Asked, CallResult, RpcError
from bridge.testing.client import Client
from bridge.testing.effects import Effects, Seen, snapshot_of
from bridge.testing.histories import History, history_of, replay
from bridge.testing.http import AsgiHttp
from bridge.testing.once import Findings, PutBack, arguments_for
from bridge.testing.script import Answers, Script
from bridge.testing.serving import bridge_of, watching
from bridge.testing.watching import Watched, WatchedCall
from bridge.testing.wire import Wire
from bridge.upstreams.base import Upstream

__all__ = ["Tester"]


class Tester(Client):
    """A client of one kind, in process, with the server behind it. The fixtures `mcp` and `mcp_each_client` give one.

    Args:
        target: the server: a `Bridge`, or what `Bridge.wrap` takes.
        kind: the kind of client.
        folder: where files of the test are, which relative paths are in.
        name: the test, for the names of its files.
        update: whether files that were saved before are written anew (`--mcp-update`).
    """

    __test__ = False  # its name begins as those of test classes do

    def __init__(
        self, target: Any, kind: ClientKind, folder: Path = Path(), name: str = "test", *, update: bool = False
    ) -> None:
        super().__init__(_NOT_OPEN, kind.revision, kind.capabilities, kind.info, {})
        self.bridge: Bridge = bridge_of(target)
        """The server under test."""
        self.kind = kind
        """The kind of client that this is."""
        self.effects = Effects()
        """Watches what tools do to the world; what it replaces is put back after the test."""
        self.wire = Wire()
        """Every HTTP exchange of the test."""
        self._folder, self._name, self._update = folder, name, update
        self._script: Script | None = None
        self._mark: Callable[[], int] = lambda: len(self.effects.seen)
        self._watched: Watched | None = None
        self._upstream: Upstream | None = None

    @property
    def route(self) -> RouteName:
        """The way that a question in a form takes to this client's user."""
        return choose(self.kind.profile, "form", rules=self.bridge.options.client_rules).route

    @property
    def can_be_asked(self) -> bool:
        """Whether its user can be asked in a form at all. A call that asks ends with an `RpcError` where not."""
        return self.route is not RouteName.REFUSE

    def answers(self, answers: Answers) -> None:
        """Write the answers of the next questions down.

        A question without an answer fails the test, and so does an answer that no question asked for, once the test is
        over or other answers are written down.

        Args:
            answers: a list, in the order of the questions; or a dict, from a question's key or its text to its answer.
                An answer is what `accept`, `decline` and `cancel` return; a dict, model, dataclass or Struct that fills
                the form in; any other value, which fills its only field in; True or False for a page; or a function
                from an `Asked` to one of those.

        Raises:
            AnswersUnused: the answers before were not all used.
        """
        self.check_answers()
        self._script = Script(answers, self._find)
        self.on_elicitation(self._script)

    def check_answers(self) -> None:
        """Check that all answers which were written down were asked for. The plugin does at the end of each test.

        Raises:
            AnswersUnused: some were not.
        """
        script, self._script = self._script, None
        if script is not None:
            script.check_used()

    async def assert_effects_once(
        self,
        tool: str,
        arguments: Json | Callable[[], Json] | None = None,
        *,
        answers: Answers | None = None,
        effects: Seen | None = None,
        before: PutBack | None = None,
        kinds: Sequence[ClientKind] = KINDS,
    ) -> None:
        """Call a tool as every kind of client, and fail where it does twice what it does before a question.

        A tool that asks runs again from the top for each answer. The fault that this finds is to write first and ask
        then. Each call is compared with the same call run in one go, so a tool may well do a thing twice on purpose.

        Args:
            tool: its name.
            arguments: of each call; or a function that makes new ones for each.
            answers: as in `answers`, used anew for each call; by default the handler of `on_elicitation` answers.
            effects: where effects are seen: a list that grows, a function that counts or returns such a list, or an
                `Effects`; by default `self.effects`.
            before: puts back what a call has changed; run before each one.
            kinds: the kinds of client.

        Raises:
            EffectsTwice: something was done twice; the text says what, and in which run.
            AssertionError: the tool asked nothing, or nothing that it did was seen.
        """
        snapshot = snapshot_of(self.effects if effects is None else effects)
        findings = Findings(tool, snapshot, before)
        for kind in kinds:
            other = Tester(self.bridge, kind, self._folder, self._name)
            other._mark = lambda: len(snapshot())
            other.on_elicitation(Script(answers, other._find) if answers is not None else self._handler)
            async with other.open():
                since = await findings.before()
                try:
                    await other.tools.call(tool, arguments_for(arguments))
                except RpcError:
                    # A client that cannot be asked at all: what the tool did, it did in one run.
                    if other.can_be_asked:
                        raise
                assert other._upstream is not None
                await findings.add(kind, other._last(), since, other._upstream)
        findings.check()

    def assert_wire(self, file: str | Path | None = None) -> None:
        """Compare what went over the wire so far with what was saved; under `--mcp-update`, save it.

        Ids, sealed states and times are replaced by names, so that only what is meant to stay the same is compared.

        Args:
            file: the file, in the folder of the test; by default `wire/<name of the test>.txt`.

        Raises:
            WireChanged: it differs; the text has the difference. Or nothing was saved.
        """
        saved = self._folder / (Path("wire", f"{self._name}.txt") if file is None else file)
        if self._update:
            saved.parent.mkdir(parents=True, exist_ok=True)
            saved.write_text(self.wire.text())
        self.wire.check(saved)

    @property
    def history(self) -> History:
        """What the last call was asked, answered and stepped through.

        Raises:
            AssertionError: there was no call.
        """
        call = self._last()
        assert call is not None, "nothing was called yet, so there is no history to save"
        return history_of(call)

    def save_history(self, file: str | Path) -> None:
        """Save the history of the last call for `replay`, where there is none yet, or under `--mcp-update`.

        Args:
            file: the file, in the folder of the test.
        """
        history, saved = self.history, self._folder / file
        if self._update or not saved.exists():
            history.save(saved)

    async def replay(self, file: str | Path) -> CallResult:
        """Run a saved call anew, with its recorded answers and steps.

        Args:
            file: the file, in the folder of the test.

        Returns:
            What it ends with.

        Raises:
            HistoryChanged: it asks or steps otherwise than it did, or fails now.
            ValueError: the file is no saved history.
        """
        return await replay(self.bridge, self._folder / file)

    @asynccontextmanager
    async def open(self) -> AsyncIterator["Tester"]:
        """Serve the bridge and connect, for as long as the context is open. The plugin does around each test."""
        failure: BaseException | None = None
        async with watching(self.bridge, lambda: self._mark()) as (app, watched), anyio.create_task_group() as tasks:
            self._watched, self._upstream = watched, app.upstream
            self._http = AsgiHttp(self.wire.around(app), tasks)
            try:
                await self._open()
                yield self
            except (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:
                # Raised only when all is closed: what leaves a task group comes out as a group.
                failure = error
            tasks.cancel_scope.cancel()
        self.effects.undo()
        if failure is not None:
            raise failure

    def _find(self, asked: Asked) -> Any:
        return None if self._watched is None else self._watched.find(asked)

    def _last(self) -> WatchedCall | None:
        calls = {} if self._watched is None else self._watched.calls
        return calls[next(reversed(calls))] if calls else None


class _NotOpen(AsgiHttp):
    """In place of a connection, before there is one."""

    def __init__(self) -> None:
        pass

    async def request(self, method: str, headers: Any, body: bytes = b"") -> Any:
        """See `AsgiHttp`."""
        raise RuntimeError("this client is not open: use it in an async test, or in `async with tester.open()`")


_NOT_OPEN = _NotOpen()
