"""What a server is to each kind of client: connected as each, one after the other, and told in one struct a kind.

It prints nothing and knows no command line.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import anyio
import msgspec

from bridge.asking.fallback import FALLBACK_TOOL_NAME
from bridge.asking.reasons import (
    ASKED_UNDECLARED,
    CALL_FAILED,
    NO_FALLBACK_THERE,
    reason_of,
)
from bridge.asking.routes import RouteName, Ways
from bridge.codes import RESULT_CODES
from bridge.kinds import KINDS, ClientKind
from bridge.protocol.messages import MISSING_CLIENT_CAPABILITY, Json
from bridge.protocol.revisions import Era
from bridge.server import Options
from bridge.testing.answers import Asked, CallResult, HttpError, RpcError
from bridge.testing.client import Client, connect

__all__ = ["Checked", "KindReport", "Question", "ToolCall", "check_kinds"]

_TEXT: Final = 200
"""How much of a result or an error is told, in characters."""


class ToolCall(msgspec.Struct, frozen=True):
    """A call to make as each kind of client.

    Args:
        name: the tool.
        arguments: its arguments.
        answer: what the user says to every question: an `ElicitResult`.
    """

    name: str
    arguments: Json
    answer: Json


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """What is checked, and how.

    Args:
        app: the ASGI app to connect to.
        options: how the bridge in it is set up; None where there is none.
        call: what to call; None for nothing.
        headers: HTTP headers of every request.
        timeout_seconds: how long one kind may take.
    """

    app: Any
    options: Options | None
    call: ToolCall | None = None
    headers: Mapping[str, str] = {}
    timeout_seconds: float = 30.0

    @property
    def ways(self) -> Ways:
        """How the bridge asks; where there is none, as the protocol has it."""
        return Ways() if self.options is None else self.options.ways


class Question(msgspec.Struct, frozen=True):
    """A question that reached the user: by which route, in which mode, and its text."""

    route: str
    mode: str
    message: str


class KindReport(msgspec.Struct, kw_only=True):
    """What became of one kind.

    Args:
        kind: its name, see `bridge.kinds`.
        title: its name for people.
        era: `legacy` or `modern`.
        revision: what it asked for.
        negotiated: what it got; None where it did not connect.
        capabilities: what it declared.
        served: whether it connected, got its revision and its tools, and, where a tool was called, a result.
        tools: the names that it is shown, without the fallback tool.
        fallback_listed: whether it is shown the fallback tool too.
        route: how a form reaches its user: `rounds`, `push`, `chat` or `refuse`; `none` where no way leads there.
        reason: why, in one word, see `bridge.asking.reasons`.
        meaning: what that means.
        setting: what changes it; empty where nothing is to be changed.
        asked: the questions that reached its user, where a tool was called.
        result: what the call ended with, as text; None where none was made.
        failure: why it is not served; None where it is.
    """

    kind: str
    title: str
    era: str
    revision: str
    negotiated: str | None = None
    capabilities: Json
    served: bool = False
    tools: list[str] = []
    fallback_listed: bool = False
    route: str = "none"
    reason: str = ""
    meaning: str = ""
    setting: str = ""
    asked: list[Question] = []
    result: str | None = None
    failure: str | None = None

    def explain(self, route: str, reason: str) -> None:
        """Say how its user is asked, and why."""
        about = reason_of(reason)
        self.route, self.reason, self.meaning, self.setting = route, reason, about.meaning, about.setting


async def check_kinds(checked: Checked, *, tell: Callable[[ClientKind], object] | None = None) -> list[KindReport]:
    """Connect as each kind, one after the other.

    Args:
        checked: to what, and what to call there.
        tell: told of each kind before it is tried.
    """
    reports = []
    for kind in KINDS:
        if tell is not None:
            tell(kind)
        reports.append(await _check(checked, kind))
    return reports


async def _check(checked: Checked, kind: ClientKind) -> KindReport:
    report = KindReport(
        kind=kind.name,
        title=kind.title,
        era=kind.speaks.era.value,
        revision=kind.revision,
        capabilities=kind.capabilities,
    )
    # What ends one kind is no reason not to try the others.
    try:
        with anyio.fail_after(checked.timeout_seconds):
            await _connected(checked, kind, report)
    except BaseExceptionGroup as group:
        expected, others = group.split((RpcError, HttpError, TimeoutError, KeyError))
        if others is not None:
            raise
        report.failure = _failure(_first(expected), checked)
    except (RpcError, HttpError, TimeoutError) as error:
        report.failure = _failure(error, checked)
    report.served = report.failure is None
    return report


async def _connected(checked: Checked, kind: ClientKind, report: KindReport) -> None:
    connecting = connect(
        checked.app,
        revision=kind.revision,
        capabilities=kind.capabilities,
        info=kind.info,
        headers=checked.headers,
    )
    async with connecting as client:
        report.negotiated = str(client.initialize_result.get("protocolVersion", kind.revision))
        if report.negotiated != kind.revision:
            report.failure = f"the server answers with revision {report.negotiated}"
            return
        listed = [str(tool["name"]) for tool in await client.tools.list()]
        report.fallback_listed = FALLBACK_TOOL_NAME in listed
        report.tools = [name for name in listed if name != FALLBACK_TOOL_NAME]
        _explain(checked, kind, report, "form")
        if checked.call is not None and checked.call.name not in report.tools:
            report.failure = _short(f"there is no tool {checked.call.name}; there are {', '.join(report.tools)}")
        elif checked.call is not None:
            await _call(checked, kind, client, checked.call, report)
        if client.session_id is not None:
            await (await client.raw.delete()).closed()


def _explain(checked: Checked, kind: ClientKind, report: KindReport, mode: str) -> None:
    """How a question of a mode would reach its user."""
    choice = checked.ways.choose(kind.profile, mode)
    if checked.options is None and choice.route is RouteName.CHAT and not report.fallback_listed:
        return report.explain("none", NO_FALLBACK_THERE)
    return report.explain(choice.route.value, choice.reason)


async def _call(checked: Checked, kind: ClientKind, client: Client, call: ToolCall, report: KindReport) -> None:
    def answer(asked: Asked) -> Json:
        mode = "form" if asked.url is None else "url"
        by_chat = "elicitId" in asked.params
        if not (by_chat or kind.profile.declares(mode)):
            raise _AskedUndeclared
        route = "chat" if by_chat else "rounds" if kind.speaks.era is Era.MODERN else "push"
        report.asked.append(Question(route, mode, asked.message))
        return {"action": "accept"} if mode == "url" and call.answer["action"] == "accept" else call.answer

    client.on_elicitation(answer)
    try:
        result = await client.tools.call(call.name, call.arguments)
    except RpcError as error:
        report.result = _short(str(error))
        report.failure = f"the call ended with {report.result}"
        if error.code == MISSING_CLIENT_CAPABILITY:
            return _explain(checked, kind, report, _mode(error))
    except _AskedUndeclared:
        report.failure = "asked for what it did not declare"
        return report.explain("none", ASKED_UNDECLARED)
    else:
        report.result = _short(_text(result))
        report.failure = _ended(result, report)
    if report.asked:
        # What was seen counts, not what was to be expected.
        _explain(checked, kind, report, report.asked[-1].mode)
        report.route = report.asked[-1].route
    elif report.failure is not None:
        report.explain("none", CALL_FAILED)
    return None


class _AskedUndeclared(Exception):
    """A server asked what the client did not say that it can be asked."""


def _ended(result: CallResult, report: KindReport) -> str | None:
    """Why a result does not count as being served: its tool did not get to its user. Errors after that are its own."""
    if result.is_error and (result.error_code in RESULT_CODES or not report.asked):
        return f"the call ended with the error {_short(_text(result))}"
    return None


def _mode(error: RpcError) -> str:
    """The mode that a client was refused."""
    if error.code == MISSING_CLIENT_CAPABILITY and isinstance(error.data, dict):
        needed = error.data.get("requiredCapabilities", {})
        return "url" if "url" in needed.get("elicitation", {}) else next(iter({*needed} - {"elicitation"}), "form")
    return "form"


def _text(result: CallResult) -> str:
    return result.text() or str(result.raw.get("structuredContent", ""))


def _first(error: BaseException | None) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert error is not None
    return error


def _failure(error: BaseException, checked: Checked) -> str:
    if isinstance(error, TimeoutError):
        return f"nothing came within {checked.timeout_seconds:g} s"
    if isinstance(error, HttpError):
        return _short(f"HTTP {error.status} {error.body.decode('utf-8', 'replace')}")
    return _short(str(error))


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _TEXT else line[: _TEXT - 1] + "…"
