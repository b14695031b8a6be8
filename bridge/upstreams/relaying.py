"""What a wrapped server asks, as a question of ours; and an answer of ours, as what it waits for. Pure."""

from collections.abc import Callable, Collection
from typing import Any, Final

import msgspec

from bridge.asking.checking import is_web_url
from bridge.asking.form import CONFIRM, digest, form_of
from bridge.asking.journal import Asked
from bridge.asking.question import Mode, Reply
from bridge.protocol.messages import INVALID_PARAMS, METHOD_NOT_FOUND, Json
from bridge.upstreams.base import Failed, Finished

__all__ = ["Relayed", "page_id", "relay"]

_REFUSED: Final = -1
"""How a client says that its user does not want to sample. Source: client/sampling#error-handling."""


class Relayed(msgspec.Struct, frozen=True):
    """A question that somebody else wrote, and how its answer goes back.

    Args:
        asked: the question.
        back: from the reply to what answers the server's request.
        described_secret: the fields whose description speaks of a secret.
    """

    asked: Asked
    back: Callable[[Reply], Finished | Failed]
    described_secret: tuple[str, ...] = ()


def relay(
    method: str, params: Json, *, link: str, reask: int = 0, not_secret: Collection[str] = ()
) -> Relayed | Failed:
    """Read what a server asks.

    Args:
        method: `elicitation/create`, `sampling/createMessage` or `roots/list`.
        params: its params.
        link: names the session with the server, whose ids of pages are its own.
        reask: how many invalid answers are met by asking again.
        not_secret: fields that sound like a secret and are none.

    Returns:
        The question, or the error that answers one that cannot be asked.
    """
    if method == "roots/list":
        return Relayed(Asked(digest="roots", mode="roots", params={}), _of_client("roots"))
    if method == "sampling/createMessage":
        if not _can_be_sampled(params):
            text = "sampling/createMessage needs messages with a role and content blocks, and tools that are objects"
            return Failed(INVALID_PARAMS, text)
        wanted = {key: value for key, value in params.items() if key not in ("_meta", "task")}
        return Relayed(Asked(digest=digest(wanted), mode="sampling", params=wanted), _of_client("sampling"))
    if method != "elicitation/create":
        return Failed(METHOD_NOT_FOUND, f"Method not found: {method}")
    message = params.get("message")
    if not isinstance(message, str):
        return Failed(INVALID_PARAMS, "elicitation/create needs a message (a string)")
    if params.get("mode", "form") == "url":
        return _page(message, params, link)
    if params.get("mode", "form") != "form":
        return Failed(INVALID_PARAMS, f"elicitation/create: the mode {params['mode']!r} is not known; form or url is")
    return _form(message, params.get("requestedSchema"), reask, not_secret)


def _can_be_sampled(params: Json) -> bool:
    """Whether a conversation is one, so that it can be shown as each revision has it."""
    messages, tools = params.get("messages"), params.get("tools", [])
    if not isinstance(messages, list) or not isinstance(tools, list) or not all(isinstance(t, dict) for t in tools):
        return False
    if not all(isinstance(message, dict) and "role" in message for message in messages):
        return False
    contents = [message.get("content") for message in messages]
    blocks = [block for content in contents for block in (content if isinstance(content, list) else [content])]
    return all(isinstance(block, dict) for block in blocks)


def _form(message: str, schema: Any, reask: int, not_secret: Collection[str]) -> Relayed | Failed:
    if not isinstance(schema, dict):
        return Failed(INVALID_PARAMS, "elicitation/create needs a requestedSchema (an object)")
    try:
        form = form_of(schema)
    except (TypeError, AttributeError, KeyError) as error:
        return Failed(INVALID_PARAMS, f"This form cannot be shown: {error}")

    def back(reply: Reply) -> Finished | Failed:
        if reply.status != "accept":
            return Finished({"action": reply.status})
        if form.confirms and reply.content[CONFIRM] is not True:
            return Finished({"action": "decline"})
        return Finished({"action": "accept", "content": form.read(reply.content)})

    asked = Asked(
        digest=form.digest,
        message=message,
        schema=form.schema,
        reask=reask,
        relayed=None if form.confirms else schema,
        secret=tuple(name for name in form.secret if name not in not_secret),
    )
    return Relayed(asked, back, tuple(name for name in form.described_secret if name not in not_secret))


def _page(message: str, params: Json, link: str) -> Relayed | Failed:
    url = params.get("url")
    if not isinstance(url, str) or not is_web_url(url):
        return Failed(INVALID_PARAMS, f"elicitation/create needs an absolute http or https URL, not {url!r}")
    identity = params.get("elicitationId")
    named = page_id(link, identity if isinstance(identity, str) else digest([message, url]))
    asked = Asked(digest=digest(url), mode="url", message=message, url=url, elicitation_id=named)
    return Relayed(asked, lambda reply: Finished({"action": reply.status}))


def page_id(link: str, identity: str) -> str:
    """Our name for a page that a server names so: two servers may use the same name."""
    return digest(["page", link, identity])


def _of_client(mode: Mode) -> Callable[[Reply], Finished | Failed]:
    def back(reply: Reply) -> Finished | Failed:
        if reply.status == "accept":
            return Finished(reply.content)
        return Failed(_REFUSED, f"The client did not answer: {reply.content or mode}")

    return back
