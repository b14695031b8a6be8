"""What each client of a crowd does: every tool of the help desk, on tickets of its own, and what has to come of it.

Every effect names the conversation, so that it can be told from all others afterwards.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from bridge.demo.desk import Desk
from bridge.stores import Store
from tests.peers.driving import Call, Outcome, accept, call

__all__ = ["Conversation", "Deed", "Verdict", "conversation", "judge"]

TICKED, GENERAL = accept({"confirm": True}), accept({"agent": "general"})
AMOUNT = 20


class Deed(NamedTuple):
    """One call, and what has to be there once it was confirmed.

    Args:
        call: what is called, and what the user answers.
        value: what its result holds; None where it is a list, which others change meanwhile.
        effects: the lines of the history that it makes, each once; one that ends with a bracket goes on with a number.
        mails: the mails that it sends, each once.
    """

    call: Call
    value: dict[str, Any] | None
    effects: tuple[str, ...] = ()
    mails: tuple[str, ...] = ()


class Conversation(NamedTuple):
    """What one client does, in order."""

    name: str
    deeds: tuple[Deed, ...]


async def conversation(desk: Desk, name: str) -> Conversation:
    """Open the tickets that a conversation is about, and plan it."""
    closed, kept, other, gone, paid = [
        (await desk.open(f"{name} {what}", "low", "billing")).id for what in ("close", "keep", "merge", "delete", "pay")
    ]
    title, note = f"{name} opened", f"note of {name};"
    opening = (accept({"title": title}), accept({"priority": "high"}), GENERAL)
    deeds = (
        Deed(
            call("close_ticket", TICKED, id=closed),
            {"id": closed, "closed": True},
            (f"closed {closed}",),
            (f'To the customer of {closed}: "{name} close" is resolved.',),
        ),
        Deed(call("assign_ticket", GENERAL, id=paid), {"agent": "general"}, (f"assigned {paid} to general",)),
        Deed(call("delete_ticket", accept({"id": gone}), id=gone), {"deleted": True}, (f"deleted {gone}",)),
        Deed(
            call("refund", TICKED, id=paid, amount=AMOUNT),
            {"id": paid, "refunded": True},
            (f"reserved {AMOUNT} for {paid} (", f"refunded {AMOUNT} for {paid} ("),
            (f"To the customer of {paid}: {AMOUNT} is on its way.",),
        ),
        Deed(
            call("rename_ticket", accept({"title": f"{name} renamed"}), id=paid),
            {"renamed": True},
            (f"renamed {paid}",),
        ),
        Deed(
            call("merge_tickets", accept({"id": kept}), accept({"note": note}), first=kept, second=other),
            {"merged": True, "kept": kept},
            (f"merged {other} into {kept}: {note}",),
        ),
        Deed(
            call("deploy", accept({"approve": True, "note": note}), environment="staging"),
            {"environment": "staging", "deployed": True},
            (f"deployed to staging: {note}",),
        ),
        Deed(call("open_ticket", *opening), {"opened": True, "title": title}, ()),
        Deed(call("connect_account", accept(press=True), provider="mail"), {"connected": True}, ()),
        *(Deed(call(tool), None) for tool in ("list_tickets", "history", "outbox")),
    )
    return Conversation(name, deeds)


class Verdict(NamedTuple):
    """How many calls ended how, and what must not be."""

    confirmed: int
    failed: list[str]
    faults: list[str]


async def judge(store: Store, conversations: Sequence[tuple[Conversation, Sequence[Outcome]]]) -> Verdict:
    """Compare what the clients were told with what the desk remembers.

    Args:
        store: of the fleet.
        conversations: each with what came of its calls so far.
    """
    desk = Desk(store)
    history, outbox = await desk.history(), await desk.outbox()
    titles = [ticket.title for ticket in (await desk.tickets()).values()]
    confirmed, failed, faults = 0, list[str](), list[str]()
    connected = 0
    for each, outcomes in conversations:
        for deed, outcome in zip(each.deeds, (*outcomes, *[None] * len(each.deeds)), strict=False):
            told = outcome is not None and _confirms(deed, outcome)
            confirmed += told
            name = f"{each.name}: {deed.call.name}"
            if not told:
                failed.append(f"{name}: {_why(outcome)}")
            found = {line: sum(_is(entry, line) for entry in history) for line in deed.effects}
            found |= {mail: outbox.count(mail) for mail in deed.mails}
            if deed.call.name == "open_ticket":
                found["opened"] = titles.count(f"{each.name} opened")
            connected += told and deed.call.name == "connect_account"
            faults += [f"{name}: {what!r} happened {times} times" for what, times in found.items() if times > 1]
            faults += [f"{name}: {what!r} was confirmed and is lost" for what, n in found.items() if told and n < 1]
            if outcome is not None and outcome.result is not None and not told and not outcome.is_error:
                faults.append(f"{name}: a wrong result: {outcome.result}")
    if not connected <= (times := history.count("connected mail")) <= len(conversations):
        faults.append(f"connected {times} times, {connected} were confirmed, in {len(conversations)} conversations")
    return Verdict(confirmed, failed, faults)


def _is(entry: str, line: str) -> bool:
    return entry.startswith(line) if line.endswith("(") else entry == line


def _confirms(deed: Deed, outcome: Outcome) -> bool:
    if outcome.error is not None or outcome.result is None or outcome.is_error:
        return False
    value = outcome.value
    if deed.value is None:
        return isinstance(value, list)
    return isinstance(value, dict) and value.items() >= deed.value.items()


def _why(outcome: Outcome | None) -> str:
    if outcome is None:
        return "was not made"
    return str(outcome.error or outcome.result)
