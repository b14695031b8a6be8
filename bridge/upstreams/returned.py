"""What a server returns in place of a result: the questions of a modern one, or pages to open first. Pure.

Such a server keeps nothing: the call is made again with the answers, and with the state that it gave.
Source: basic/patterns/mrtr of 2026-07-28; client/elicitation#url-elicitation-required-error of 2025-11-25.
"""

from typing import Any

import msgspec

from bridge.asking.form import digest
from bridge.asking.journal import Journal, UpstreamState
from bridge.asking.question import Question
from bridge.protocol.inbound import META_SERVER_INFO
from bridge.protocol.messages import INTERNAL_ERROR, URL_ELICITATION_REQUIRED, Json
from bridge.upstreams.base import CallRequest, Failed, Finished, Outcome, Stopped
from bridge.upstreams.endings import failed
from bridge.upstreams.relaying import Relayed, relay

__all__ = ["Again", "answers", "read_returned"]


class Again(msgspec.Struct, frozen=True):
    """The server wants the call again, with its state, and asks nothing."""

    upstream: UpstreamState


def read_returned(
    request: CallRequest, returned: Finished | Failed, journal: Journal, *, link: str, not_secret: tuple[str, ...] = ()
) -> Outcome | Again:
    """Read what a server returned for a call.

    Args:
        request: the call.
        returned: its result or error.
        journal: gains what the server wants back.
        link: names the session with the server.
        not_secret: fields that sound like a secret and are none.

    Returns:
        The result or error; the questions that stand in its place; or that the call is to be made again.
    """
    if isinstance(returned, Failed):
        return _pages(returned, journal, link) if returned.code == URL_ELICITATION_REQUIRED else returned
    kind = returned.result.get("resultType", "complete")
    if kind == "complete":
        journal.upstream = None
        return Finished(_plain(returned.result))
    if kind != "input_required":
        return failed(request, f"The server answered with a result of the unknown type {kind!r}")
    asked, state = returned.result.get("inputRequests") or {}, returned.result.get("requestState")
    if not isinstance(asked, dict) or not (state is None or isinstance(state, str)) or not (asked or state):
        return failed(request, "The server wants input and does not say which: its inputRequests are none")
    return (
        _questions(request, asked, state, journal, link, not_secret)
        if asked
        else Again(UpstreamState(state, {}, {}, 0))
    )


def _plain(result: Json) -> Json:
    """A result without what the bridge says itself: that it is complete, and who made it."""
    meta = result.get("_meta")
    if "resultType" not in result and not (isinstance(meta, dict) and META_SERVER_INFO in meta):
        return result
    plain = {key: value for key, value in result.items() if key != "resultType"}
    if isinstance(meta, dict):
        kept = {key: value for key, value in meta.items() if key != META_SERVER_INFO}
        plain.pop("_meta")
        plain |= {"_meta": kept} if kept else {}
    return plain


def _questions(
    request: CallRequest, requests: Json, state: str | None, journal: Journal, link: str, not_secret: tuple[str, ...]
) -> Outcome:
    found: dict[str, Relayed] = {}
    for key, wanted in requests.items():
        relayed = _relayed(wanted, link, not_secret)
        if isinstance(relayed, Failed):
            return failed(request, f"The server asks what cannot be asked ({key}): {relayed.message}")
        found[key] = relayed
    return _stopped(found, state, requests, journal)


def _relayed(wanted: Any, link: str, not_secret: tuple[str, ...]) -> Relayed | Failed:
    params = wanted.get("params", {}) if isinstance(wanted, dict) else None
    if not isinstance(params, dict):
        return Failed(INTERNAL_ERROR, "it is no request")
    return relay(str(wanted.get("method")), params, link=link, not_secret=not_secret)


def _stopped(found: dict[str, Relayed], state: str | None, requests: Json, journal: Journal) -> Stopped:
    """The questions under the server's own keys. What it was answered before is in its state, and forgotten here."""
    number = 1 if journal.upstream is None else journal.upstream.number + 1
    journal.replies.clear()
    journal.asked.clear()
    questions: list[Question] = []
    for key, relayed in found.items():
        path = digest([number, key, relayed.asked.message, relayed.asked.digest])
        journal.asked[path] = key
        questions.append(relayed.asked.question(key, path, 0))
    paths = {key: path for path, key in journal.asked.items()}
    journal.upstream = UpstreamState(state, requests, paths, number)
    return Stopped(questions)


def _pages(refused: Failed, journal: Journal, link: str) -> Outcome:
    """The pages that a server wants opened before it runs the call at all."""
    declined = [reply.status for reply in journal.replies.values() if reply.status != "accept"]
    if declined:
        return Failed(INTERNAL_ERROR, f"{refused.message}: the user did not open the page ({declined[0]})")
    wanted = refused.data.get("elicitations") if isinstance(refused.data, dict) else None
    found: dict[str, Relayed] = {}
    for position, page in enumerate(wanted if isinstance(wanted, list) else (), start=1):
        about = {**page, "mode": "url"} if isinstance(page, dict) else {}
        relayed = relay("elicitation/create", about, link=link)
        if isinstance(relayed, Failed):
            return refused
        found[f"elicitation-{position}"] = relayed
    return _stopped(found, None, {}, journal) if found else refused


def answers(journal: Journal, *, link: str = "") -> Json:
    """The params with which a call is made again: the server's state, and the answers to what it asked."""
    upstream = journal.upstream
    if upstream is None:
        return {}
    given: Json = {}
    for key, wanted in upstream.requests.items():
        reply, relayed = journal.replies.get(upstream.paths[key]), _relayed(wanted, link, ())
        if reply is not None and isinstance(relayed, Relayed):
            back = relayed.back(reply)
            given[key] = back.result if isinstance(back, Finished) else {"action": reply.status}
    params: Json = {"inputResponses": given} if given else {}
    return params if upstream.state is None else {**params, "requestState": upstream.state}
