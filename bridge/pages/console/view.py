"""The console as a page: numbers and charts first, then who is connected, what is open, and each session."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from bridge.counting import Hour
from bridge.explaining import Explained, OpenQuestion, SessionExplained
from bridge.pages.console.figures import shares, tiles
from bridge.pages.markup import Markup, badge, document, duration, mark, table

__all__ = ["Filter", "Overview", "live", "login_page", "page"]

_EMPTY: Final = Markup("")
_ENDING: Final = "Its calls are cancelled, and the client has to begin anew"
_REMEMBERED: Final = {"autocomplete": "current-password"}


class Filter(msgspec.Struct, frozen=True):
    """Which sessions are listed: part of the client's name, and a revision; empty for all."""

    client: str = ""
    revision: str = ""


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """What the console shows.

    Args:
        server: the server's name.
        explained: the sessions.
        hour: the last sixty minutes of all nodes.
        shown: which sessions are listed.
    """

    server: str
    explained: Explained
    hour: Hour
    shown: Filter


def page(overview: Overview, form_token: str, said: str) -> str:
    """The whole page.

    Args:
        overview: what it shows.
        form_token: what its forms carry.
        said: what has just been done, or empty.
    """
    leave = mark("button", "Log out", class_="quiet")
    top = mark(
        "header",
        mark("div", mark("h1", "Console"), mark("p", overview.server), class_="brand"),
        mark("p", "Live from the store, all nodes", class_="pulse", id="pulse"),
        mark("form", _hidden("form_token", form_token), leave, method="post", action="/console/logout"),
        class_="top",
    )
    told = mark("p", said, class_="said", role="status") if said else _EMPTY
    body = mark("main", told, mark("div", live(overview, form_token), id="live"))
    return document(f"Console · {overview.server}", top + body, scripts=_SCRIPTS, styles=_STYLES, icon=_ICON)


def login_page(said: str) -> str:
    """The page that asks for the token."""
    told = mark("p", said, class_="wrong", role="alert") if said else _EMPTY
    form = mark(
        "form",
        # For who keeps passwords: they want to know whose it is.
        mark("input", type="text", value="console", autocomplete="username", hidden=""),
        mark("label", "Token", for_="token"),
        mark(
            "input",
            type="password",
            name="token",
            id="token",
            autocomplete="current-password",
            required="",
            autofocus="",
        ),
        mark("button", "Log in", class_="primary"),
        method="post",
        action="/console/login",
    )
    option = mark("code", "--console-token-file")
    hint = mark("p", "The secret that the server was started with: ", option, " or its environment.", class_="hint")
    return document(
        "Console", mark("main", mark("h1", "Console"), told, form, hint, class_="login"), styles=_STYLES, icon=_ICON
    )


def live(overview: Overview, form_token: str) -> Markup:
    """What changes while the page is open."""
    return _EMPTY.join(
        [
            tiles(overview.explained, overview.hour),
            shares(overview.explained),
            _open_questions(overview.explained, form_token),
            _sessions(overview, form_token),
        ]
    )


def _open_questions(explained: Explained, form_token: str) -> Markup:
    found = [(session, question) for session in explained.sessions for question in session.questions]
    found.sort(key=lambda pair: -pair[1].age_seconds)
    if not found:
        none = "No question is open in the sessions below."
        return mark("section", mark("h2", "Open questions"), mark("p", none, class_="hint"), class_="card")
    rows = [_question(session, question, form_token) for session, question in found]
    head = ("Tool", "Client", "Asked", "Open for", "Its call", "")
    return mark("section", mark("h2", "Open questions"), table(head, rows, class_="acts"), class_="card")


def _question(session: SessionExplained, question: OpenQuestion, form_token: str) -> Sequence[str]:
    fields = {"session": session.handle, "question": question.handle}
    cancel = _action("cancel", "Cancel", "Answer it as if the user had cancelled", fields, form_token)
    return (
        mark("code", question.tool),
        _client(session),
        badge(question.route) + Markup(f" {question.mode}"),
        duration(question.age_seconds),
        "held" if question.held else "waits",
        cancel,
    )


def _sessions(overview: Overview, form_token: str) -> Markup:
    explained = overview.explained
    listed = sorted(explained.sessions, key=lambda session: (-len(session.questions), session.client["name"]))
    head = ("Session", "Client", "Revision", "How forms are asked, and why", "Open", "")
    rows = [_session(session, form_token) for session in listed]
    shown = table(head, rows, class_="acts") if rows else _nothing(overview.shown)
    count = f"{len(listed)} shown, {explained.looked_at} looked at, {explained.in_all} live"
    return mark(
        "section",
        mark("div", mark("h2", "Sessions"), mark("small", count), _filter(overview), class_="head"),
        shown,
        class_="card",
    )


def _nothing(shown: Filter) -> Markup:
    text = "No session fits the filter." if shown != Filter() else "No session is live. Modern clients need none."
    return mark("p", text, class_="hint")


def _filter(overview: Overview) -> Markup:
    shown = overview.shown
    names = ["", *overview.explained.by_revision]
    options = [
        mark("option", name or "every revision", value=name, selected="" if name == shown.revision else None)
        for name in names
    ]
    client = mark("input", type="search", name="client", value=shown.client, placeholder="client", aria_label="Client")
    revision = mark("select", *options, name="revision", aria_label="Revision")
    return mark("form", client, revision, mark("button", "Filter"), method="get", action="/console", class_="filter")


def _session(session: SessionExplained, form_token: str) -> Sequence[str]:
    form = session.route("form")
    why = mark("p", form.meaning) + (mark("p", mark("b", "To change it: "), form.setting) if form.setting else _EMPTY)
    reason = mark("details", mark("summary", badge(form.route), " ", mark("code", form.reason)), why, class_="why")
    end = _action(
        "end", "End", "Its calls are cancelled; the client has to begin anew", {"session": session.handle}, form_token
    )
    questions = str(len(session.questions)) if session.questions else "–"
    return (mark("code", session.handle), _client(session), session.revision, reason, questions, end)


def _client(session: SessionExplained) -> Markup:
    name, version = session.client["name"] or "without a name", session.client["version"]
    return mark("span", name) + (Markup(" ") + mark("small", version) if version else _EMPTY)


def _action(does: str, label: str, warning: str, fields: Mapping[str, str], form_token: str) -> Markup:
    """A button that says first what it does: two steps, without a script."""
    hidden = [_hidden(name, value) for name, value in {**fields, "form_token": form_token}.items()]
    sure = mark("button", f"{label} it", class_="danger")
    form = mark("form", *hidden, mark("p", f"{warning}."), sure, method="post", action=f"/console/{does}")
    return mark("details", mark("summary", f"{label}…"), form, class_="action")


def _hidden(name: str, value: str) -> Markup:
    return mark("input", type="hidden", name=name, value=value)


_STYLES: Final = ("/console/console.css",)
_ICON: Final = "/console/icon.svg"
_SCRIPTS: Final = ("/console/console.js",)
