"""One client at one server: what came of each check. Pure: it is given what the driver reported."""

import re
from collections.abc import Iterable
from typing import Literal

import msgspec

from tests.matrix.clients import Asked, Client
from tests.matrix.profiles import CHECKS, Check, Json, Profile, Step
from tests.matrix.servers import TRANSPORTS, Program, Server, Transport
from tests.peers.driving import FALLBACK_TOOL, Outcome

Status = Literal["passed", "refused", "failed", "absent", "unreachable"]
"""`refused`: it was told, as it must be, that it cannot be asked; `absent`: the server has no such tool;
`unreachable`: there is no transport that both speak."""
MISSING_CAPABILITY = -32021
_LONGEST = 240
_REFUSED = "it declares no elicitation, and was told so: -32021 with requiredCapabilities"


class Verdict(msgspec.Struct, frozen=True):
    """What came of a check, and why where it did not pass."""

    status: Status
    why: str = ""


Verdicts = dict[Check, Verdict]
_CANNOT_ANSWER = Verdict(
    "refused", "it was asked in the chat, but each of its runs is a session of its own, over before anybody answers"
)


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """A client at a server, directly and through the bridge; None where that was not tried."""

    client: str
    server: str
    direct: Verdicts | None
    bridge: Verdicts | None

    @property
    def adds(self) -> list[Check]:
        """The checks that pass, or are refused as they must be, through the bridge only."""
        if self.direct is None or self.bridge is None:
            return []
        return [check for check in CHECKS if is_well(self.bridge[check]) and not is_well(self.direct[check])]

    @property
    def failures(self) -> list[str]:
        """What did not pass through the bridge, each reason a sentence."""
        checks: dict[str, list[Check]] = {}
        for check, verdict in (self.bridge or {}).items():
            if verdict.status == "failed":
                checks.setdefault(verdict.why, []).append(check)
        return [f"{self.client} at {self.server}, {', '.join(failed)}: {why}" for why, failed in checks.items()]


def is_well(verdict: Verdict) -> bool:
    """Whether a check came out as it has to."""
    return verdict.status in ("passed", "refused")


def unreachable(client: Client, program: Program) -> Verdicts | None:
    """The verdicts on a client that does not speak what a server speaks; None where it does."""
    if program.transport in client.transports:
        return None
    speaks = ", ".join(TRANSPORTS[transport] for transport in client.transports)
    why = f"the server speaks {TRANSPORTS[program.transport]}, the client {speaks}"
    return {check: Verdict("unreachable", why) for check in CHECKS}


def judge(client: Client, server: Server, said: Json, over: Transport, *, by_bridge: bool) -> Verdicts:
    """Judge what a driver reported of a visit.

    Args:
        client: who made it.
        server: what was visited.
        said: `report`, or `failed` and why.
        over: what they spoke.
        by_bridge: whether the bridge was between them.
    """
    if "failed" in said:
        why = f"the session failed: {_short(said['failed'])}"
        return {check: _absent(server.profile, check) or Verdict("failed", why) for check in CHECKS}
    report = said["report"]
    resources, prompts, *calls = [msgspec.convert(each, Outcome) for each in report["calls"]]
    profile = server.profile
    verdicts: Verdicts = {
        "lists": _lists(client, profile, _names(report["tools"], "name"), resources, prompts, by_bridge=by_bridge)
    }
    for (check, step), call, told in zip(profile.steps.items(), calls, report["calls"][2:], strict=True):
        verdicts[check] = _call(client, step, call, told["progress"] if over in client.shows_progress else None)
    return {check: _absent(profile, check) or verdicts[check] for check in CHECKS}


def _absent(profile: Profile, check: Check) -> Verdict | None:
    return Verdict("absent", profile.absent[check]) if check in profile.absent else None


def _lists(
    client: Client, profile: Profile, tools: set[str], resources: Outcome, prompts: Outcome, *, by_bridge: bool
) -> Verdict:
    expected = {*profile.tools, *(profile.asking_tools if by_bridge or client.can_be_asked else ())}
    if by_bridge and client.asked in ("chat", "once"):
        expected.add(FALLBACK_TOOL)
    missing = [f"the tool {name}" for name in sorted(expected - tools)]
    if FALLBACK_TOOL in tools - expected:
        return Verdict("failed", f"{FALLBACK_TOOL} is listed to a client that is not asked in the chat")
    for listed, key, names in ((resources, "uri", profile.resources), (prompts, "name", profile.prompts)):
        if listed.result is None:
            return Verdict("failed", f"{listed.name}: {_came(listed)}")
        entries = listed.result[listed.name.split("/")[0]]
        missing += [f"{key} {name}" for name in names if name not in _names(entries, key)]
    return Verdict("failed", f"not listed: {', '.join(missing)}") if missing else Verdict("passed")


def _names(entries: Iterable[Json], key: str) -> set[str]:
    return {entry[key] for entry in entries}


def _call(client: Client, step: Step, call: Outcome, progress: list[float] | None) -> Verdict:
    if step.questions and client.asked == "refused":
        return _is_refused(call)
    problem = _asked_wrongly(step, call, client.asked)
    if problem is None and step.questions and client.asked == "once":
        answered_by_another = call.error is None and not call.is_error
        return Verdict("failed", f"another session answered: {_came(call)}") if answered_by_another else _CANNOT_ANSWER
    if problem is None and (call.result is None or call.is_error or step.says not in call.text):
        problem = f'expected "{step.says}", came {_came(call)}'
    expected = list(range(1, step.steps + 1))
    if problem is None and progress is not None and progress != expected:
        problem = f"expected progress {expected}, came {progress}"
    return Verdict("passed") if problem is None else Verdict("failed", problem)


def _is_refused(call: Outcome) -> Verdict:
    error = call.error or {}
    needs = (error.get("data") or {}).get("requiredCapabilities") or {}
    if error.get("code") == MISSING_CAPABILITY and "elicitation" in needs:
        return Verdict("refused", _REFUSED)
    return Verdict("failed", f"expected {MISSING_CAPABILITY} with data.requiredCapabilities, came {_came(call)}")


def _asked_wrongly(step: Step, call: Outcome, asked: Asked) -> str | None:
    """What is wrong with how a client was asked."""
    # Whose session is over after the first question gets no further.
    questions = list(step.questions[:1] if asked == "once" else step.questions)
    way = "form" if asked == "form" else "chat"
    if call.messages == questions and set(call.asked_by) <= {way}:
        return None
    was_asked = [f"{message} ({way})" for message, way in zip(call.messages, call.asked_by, strict=True)]
    return f"expected to be asked {questions} by {way}, was asked {was_asked}; came {_came(call)}"


def _came(call: Outcome) -> str:
    if call.error is not None:
        code = call.error.get("code")
        return _short(f"error {code}: {call.error['message']}" if code else call.error["message"])
    texts = [block.get("text", block["type"]) for block in (call.result or {}).get("content", ())]
    return _short(f"{'an error' if call.is_error else 'a result'}: {' '.join(texts)}")


def _short(text: str) -> str:
    """The text without what differs from run to run, on one line."""
    text = re.sub(r"(127\.0\.0\.1|localhost):\d+", r"\1", text)
    text = re.sub(r"--port \d+", "--port …", text)
    text = re.sub(r"ID: \w+", "ID: …", text)
    text = re.sub(r"[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}|0x[0-9a-f]{6,}", "…", text)
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
