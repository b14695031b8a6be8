"""A walk through the help desk: every tool, with every kind of answer, in one session. The same for every client."""

from typing import Any, NamedTuple

from tests.peers.driving import (
    CANCEL,
    DECLINE,
    HISTORY,
    TICKED,
    UNTICKED,
    Call,
    Outcome,
    Peer,
    Report,
    accept,
    call,
    drive,
)

CLOSE_T1 = 'Close T-1 ("Cannot log in") and mail the customer that it is resolved?'
ASSIGN_T2 = 'Who takes T-2 ("Invoice total is wrong")?'
DELETE_T3 = 'Delete T-3 ("Login link expired") for good? Type its id to be sure.'
ABOUT = "What is the new ticket about?"
MATTERS = 'How much does "Printer on fire" matter?'
TAKES = 'Who takes "Printer on fire", of high priority?'
PAY_T2 = 'Pay 20 back for T-2 ("Invoice total is wrong")?'
NAME_T4 = 'What should T-4 be called, instead of "Password reset email missing"?'
STAYS, NOTED = "Which one stays, T-4 or T-5? The other is deleted.", "What should be noted about merging T-4 and T-5?"
DEPLOY = "Deploy to staging?"
MAIL_T1 = 'To the customer of T-1: "Cannot log in" is resolved.'
MAIL_T2 = "To the customer of T-2: 20 is on its way."

FIRE, HIGH, GENERAL = accept({"title": "Printer on fire"}), accept({"priority": "high"}), accept({"agent": "general"})
T4 = accept({"id": "T-4"})


class Step(NamedTuple):
    """One call, and all that is to come of it.

    Args:
        name: of the step.
        call: what is called, and what the user answers.
        asked: the questions' messages.
        value: what the result holds of this; a text where the tool fails, which its error holds.
        effects: what the history has more than before; `{n}` is its next number.
    """

    name: str
    call: Call
    asked: tuple[str, ...]
    value: Any
    effects: tuple[str, ...] = ()


def _close(answer: Any, closed: bool) -> tuple[Call, tuple[str, ...], Any]:
    return call("close_ticket", answer, id="T-1"), (CLOSE_T1,), {"id": "T-1", "closed": closed}


def _assign(answer: Any, assigned: bool) -> tuple[Call, tuple[str, ...], Any]:
    return call("assign_ticket", answer, id="T-2"), (ASSIGN_T2,), {"id": "T-2", "assigned": assigned}


def _delete(answer: Any, deleted: bool) -> tuple[Call, tuple[str, ...], Any]:
    return call("delete_ticket", answer, id="T-3"), (DELETE_T3,), {"id": "T-3", "deleted": deleted}


def _refund(answer: Any, refunded: bool) -> tuple[Call, tuple[str, ...], Any]:
    return call("refund", answer, id="T-2", amount=20), (PAY_T2,), {"id": "T-2", "refunded": refunded}


def _rename(answer: Any, renamed: bool) -> tuple[Call, tuple[str, ...], Any]:
    return call("rename_ticket", answer, id="T-4"), (NAME_T4,), {"id": "T-4", "renamed": renamed}


def _merge(stays: Any, note: Any, value: Any) -> tuple[Call, tuple[str, ...], Any]:
    return call("merge_tickets", stays, note, first="T-4", second="T-5"), (STAYS, NOTED), value


def _deploy(answer: Any, value: Any) -> tuple[Call, tuple[str, ...], Any]:
    return call("deploy", answer, environment="staging"), (DEPLOY,), value


RESERVED, RELEASED = "reserved 20 for T-2 (R-{n})", "released 20 for T-2 (R-{n})"
BILLING = call("assign_ticket", id="T-2", agent="billing")

STEPS = [
    Step("close, no tick", *_close(UNTICKED, False)),
    Step("close, declined", *_close(DECLINE, False)),
    Step("close, cancelled", *_close(CANCEL, False)),
    Step("close, accepted", *_close(TICKED, True), ("closed T-1",)),
    Step("assign, agent given", BILLING, (), {"assigned": True, "agent": "billing"}, ("assigned T-2 to billing",)),
    Step("assign, declined", *_assign(DECLINE, False)),
    Step("assign, cancelled", *_assign(CANCEL, False)),
    Step("assign, picked", *_assign(GENERAL, True), ("assigned T-2 to general",)),
    Step("delete, declined", *_delete(DECLINE, False)),
    Step("delete, cancelled", *_delete(CANCEL, False)),
    Step("delete, wrong id", *_delete(accept({"id": "T-4"}), False)),
    Step("delete, right id", *_delete(accept({"id": "T-3"}), True), ("deleted T-3",)),
    Step("delete, unknown", call("delete_ticket", id="T-3"), (), "Unknown ticket"),
    Step("open, declined", call("open_ticket", DECLINE), (ABOUT,), {"opened": False}),
    Step("open, cancelled at the second", call("open_ticket", FIRE, CANCEL), (ABOUT, MATTERS), {"opened": False}),
    Step(
        "open, declined at the third",
        call("open_ticket", FIRE, HIGH, DECLINE),
        (ABOUT, MATTERS, TAKES),
        {"opened": False},
    ),
    Step(
        "open, accepted",
        call("open_ticket", FIRE, HIGH, GENERAL),
        (ABOUT, MATTERS, TAKES),
        {"opened": True, "id": "T-5", "title": "Printer on fire", "priority": "high", "agent": "general"},
        ("opened T-5",),
    ),
    Step("refund, no tick", *_refund(UNTICKED, False), (RESERVED, RELEASED)),
    Step("refund, declined", *_refund(DECLINE, False), (RESERVED, RELEASED)),
    Step("refund, cancelled", *_refund(CANCEL, False), (RESERVED, RELEASED)),
    Step("refund, accepted", *_refund(TICKED, True), (RESERVED, "refunded 20 for T-2 (R-{n})")),
    Step("rename, declined", *_rename(DECLINE, False)),
    Step("rename, cancelled", *_rename(CANCEL, False)),
    Step("rename, accepted", *_rename(accept({"title": "Mail is missing"}), True), ("renamed T-4",)),
    Step("merge, declined", *_merge(DECLINE, DECLINE, {"merged": False})),
    Step("merge, cancelled", *_merge(CANCEL, accept({"note": "the same"}), {"merged": False})),
    Step("merge, note declined", *_merge(T4, DECLINE, {"merged": True, "kept": "T-4"}), ("merged T-5 into T-4",)),
    Step("deploy, declined", *_deploy(DECLINE, "did not agree (decline)")),
    Step("deploy, cancelled", *_deploy(CANCEL, "did not agree (cancel)")),
    Step("deploy, no tick", *_deploy(accept({"approve": False}), "did not tick")),
    Step(
        "deploy, accepted",
        *_deploy(accept({"approve": True, "note": "at last"}), {"environment": "staging", "deployed": True}),
        ("deployed to staging: at last",),
    ),
]


class Walked(NamedTuple):
    """What a client saw on the way."""

    report: Report
    tickets: Outcome
    outbox: Outcome
    tickets_afterwards: Outcome
    steps: dict[str, tuple[list[str], Outcome, list[str]]]
    """By step: the history before, the outcome, the history after."""

    def went_well(self, step: Step) -> None:
        """Assert that a step asked what it has to, and did what it says and nothing else."""
        before, outcome, after = self.steps[step.name]
        assert tuple(outcome.messages) == step.asked
        if isinstance(step.value, str):
            assert outcome.is_error
            assert step.value in outcome.text
        else:
            assert not outcome.is_error, outcome.text
            assert outcome.value.items() >= step.value.items()
        assert after == [*before, *(effect.format(n=len(before) + 1) for effect in step.effects)]


def walk(peer: Peer, url: str) -> Walked:
    """Make every step, with a look at the history after each."""
    looked = [each for step in STEPS for each in (step.call, HISTORY)]
    report = drive(peer, url, call("list_tickets"), HISTORY, *looked, call("outbox"), call("list_tickets"))
    tickets, *between, outbox, afterwards = report.calls
    histories = [outcome.value for outcome in between[::2]]
    outcomes = between[1::2]
    steps = {
        step.name: (before, outcome, after)
        for step, before, outcome, after in zip(STEPS, histories[:-1], outcomes, histories[1:], strict=True)
    }
    return Walked(report, tickets, outbox, afterwards, steps)
