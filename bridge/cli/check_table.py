"""The reports of `check` for people: a table, and under it each no with its reason and the setting that changes it."""

from typing import Final

from rich import box
from rich.console import Console, Group
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bridge.asking.reasons import CALL_FAILED
from bridge.cli.checking import KindReport

__all__ = ["ROUTES", "show"]

ROUTES: Final = {
    "rounds": "form, next request",
    "push": "form, during the call",
    "chat": "in the chat",
    "refuse": "not at all",
    "none": "not at all",
}
"""How each route looks to the user."""

_SHOWN: Final = 90
"""How much of a failure is shown, in characters; `--json` has more."""

_WIDE: Final = 116
"""From how many columns on every fact has a column of its own."""


def show(out: Console, reports: list[KindReport], *, called: str | None, direct: bool) -> None:
    """Print what was found.

    Args:
        out: where.
        reports: one for each kind.
        called: the tool that was called, or None.
        direct: whether no bridge was between.
    """
    out.print(_table(reports, called, wide=out.width >= _WIDE))
    notes = list(_notes(reports))
    if notes:
        out.print(Group(Text("Why not a form, and what changes it", style="bold"), *notes))
    served = sum(report.served for report in reports)
    way = "directly" if direct else "through the bridge"
    style = "green" if served == len(reports) else "red"
    out.print(f"[{style}]{served} of {len(reports)} kinds of clients are served[/] {way}.")


def _table(reports: list[KindReport], called: str | None, *, wide: bool) -> Table:
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    table.add_column("")
    table.add_column("client", no_wrap=wide, min_width=18)
    if wide:
        table.add_column("era")
        table.add_column("revision", no_wrap=True)
    table.add_column("tools", no_wrap=True, justify="right" if wide else "left")
    if wide:
        table.add_column("fallback")
    table.add_column("asked how", min_width=11)
    table.add_column("result" if called is None else f"result of {called}", min_width=20)
    for report in reports:
        table.add_row(
            "[green]✓[/]" if report.served else "[red]✗[/]",
            *(_wide(report) if wide else _narrow(report)),
            _asked(report, called),
            _result(report),
        )
    return table


def _wide(report: KindReport) -> list[str]:
    listed = "listed" if report.fallback_listed else "no"
    facts = (str(len(report.tools)), listed) if report.negotiated else ("-", "-")
    return [report.title, report.era, report.negotiated or report.revision, *facts]


def _narrow(report: KindReport) -> list[str]:
    tools = (
        f"{len(report.tools)}{chr(10) + '+ fallback' if report.fallback_listed else ''}" if report.negotiated else "-"
    )
    return [f"{report.title}\n[dim]{report.era}, {report.negotiated or report.revision}[/]", tools]


def _asked(report: KindReport, called: str | None) -> str:
    if called is not None and not report.asked and (report.failure is None or report.reason == CALL_FAILED):
        return "[dim]asked nothing[/]"
    if report.negotiated is None:
        return "-"
    how = ROUTES[report.route]
    if report.asked and report.asked[-1].mode == "url":
        how = how.replace("form", "page")
    times = f" [dim]({len(report.asked)} questions)[/]" if len(report.asked) > 1 else ""
    return f"[yellow]{how}[/]" if report.route in ("refuse", "none") else how + times


def _result(report: KindReport) -> str:
    if report.failure is not None:
        shown = report.failure if len(report.failure) <= _SHOWN else report.failure[:_SHOWN] + "…"
        return f"[red]{escape(shown)}[/]"
    return "connects, lists" if report.result is None else escape(report.result)


def _notes(reports: list[KindReport]) -> list[Padding]:
    """One paragraph for each reason, with the kinds that it is about."""
    about: dict[str, list[KindReport]] = {}
    for report in reports:
        if report.setting and report.reason:
            about.setdefault(report.reason, []).append(report)
    return [_note(reason, found) for reason, found in about.items()]


def _note(reason: str, reports: list[KindReport]) -> Padding:
    text = Text()
    text.append(reason, style="cyan")
    text.append(f"  {'; '.join(report.title for report in reports)}\n", style="dim")
    text.append(f"{reports[0].meaning}\n")
    text.append("To change it: ", style="bold")
    text.append(reports[0].setting)
    return Padding(text, (0, 0, 1, 2))
