"""The playground's page as HTML: what is known before a script runs stands in it."""

from html import escape
from string import Template
from typing import Any, Final

import msgspec

from bridge.asking.fallback import FALLBACK_TOOL_NAME, PENDING
from bridge.asking.routes import ClientRule
from bridge.pages.kinds import CARDS, CLIENT_NAME, REASONS, WAYS, Card, explained, revision_facts
from bridge.upstreams.results import CODE_KEY

__all__ = ["About", "rendered"]


class About(msgspec.Struct, frozen=True, kw_only=True):
    """What the page says of its server.

    Args:
        title: the server's name, for people.
        version: of the bridge.
        token: what the page sends with each of its own requests.
        rules: what the operator decided about some clients.
        snippet: the code of one tool, to show beside what becomes of it; empty for none.
        can_restart: whether there is something to put back to how it was.
    """

    title: str
    version: str
    token: str
    rules: tuple[ClientRule, ...] = ()
    snippet: str = ""
    can_restart: bool = False


def rendered(template: str, about: About) -> str:
    """Fill the page in."""
    return Template(template).substitute(
        title=escape(about.title),
        version=escape(about.version),
        cards="\n".join(_card(kind, about.rules, number == 0) for number, kind in enumerate(CARDS)),
        revisions="\n".join(f"<option>{facts['name']}</option>" for facts in revision_facts()),
        ways="\n".join(_way(name) for name in WAYS),
        snippet=_snippet(about.snippet),
        snippet_hidden="" if about.snippet else "hidden",
        restart_hidden="" if about.can_restart else "hidden",
        data=_data(about),
    )


def _card(kind: Card, rules: tuple[ClientRule, ...], chosen: bool) -> str:
    route = _route(kind, rules)
    return _CARD.substitute(
        id=kind.id,
        checked="checked" if chosen else "",
        route=route,
        way=escape(WAYS[route]["short"]),
        title=escape(kind.title),
        revision=kind.revision,
        about=escape(kind.about),
    )


def _route(kind: Card, rules: tuple[ClientRule, ...]) -> str:
    route: str = explained(kind.revision, kind.capabilities, {"name": CLIENT_NAME}, rules)["form"]["route"]
    return route


def _way(name: str) -> str:
    title, text = escape(WAYS[name]["title"]), escape(WAYS[name]["text"])
    return f'<li class="way {name}"><b>{title}</b> <span>{text}</span></li>'


def _snippet(code: str) -> str:
    """The code, with the lines marked in which it asks."""
    lines = escape(code).split("\n")
    return "\n".join(f"<mark>{line}</mark>" if "elicit" in line else line for line in lines)


def _data(about: About) -> str:
    """What scripts are told. No `<` stands in it, so that nothing can end the element that it stands in."""
    data: dict[str, Any] = {
        "clientName": CLIENT_NAME,
        "version": about.version,
        "token": about.token,
        "fallbackTool": FALLBACK_TOOL_NAME,
        "pending": PENDING,
        "codeKey": CODE_KEY,
        "canRestart": about.can_restart,
        "kinds": [{**msgspec.to_builtins(kind), "route": _route(kind, about.rules)} for kind in CARDS],
        "revisions": revision_facts(),
        "ways": WAYS,
        "reasons": REASONS,
    }
    return msgspec.json.encode(data).decode().replace("<", "\\u003c")


_CARD: Final = Template(
    """<label class="card $route"><input type="radio" name="kind" value="$id" $checked>
<span class="card-title">$title</span><code class="card-revision">$revision</code>
<span class="card-about">$about</span><span class="badge">$way</span></label>"""
)
