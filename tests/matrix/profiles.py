"""What a server is called for, and what has to come of it. It knows neither clients nor how a server is reached."""

from typing import Any, Literal

import msgspec

Json = dict[str, Any]
Check = Literal["lists", "add", "accept", "decline", "twice", "progress"]
CHECKS: tuple[Check, ...] = ("lists", "add", "accept", "decline", "twice", "progress")
TITLES: dict[Check, str] = {
    "lists": "lists tools, resources and prompts",
    "add": "calls a tool that adds",
    "accept": "is asked once, accepts",
    "decline": "is asked once, declines",
    "twice": "is asked twice in a row",
    "progress": "is told of progress",
}


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a tool, and what has to come of it.

    Args:
        tool: its name.
        arguments: of the call.
        answers: what the user says, each `action` and `content`.
        questions: what the user is asked, in this order.
        says: what the result's text holds.
        steps: how often progress is reported: 1, 2 and so on.
    """

    tool: str
    arguments: Json
    says: str
    questions: tuple[str, ...] = ()
    answers: tuple[Json, ...] = ()
    steps: int = 0


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """All that a server is called for.

    Args:
        steps: by check; a check that is missing does not apply.
        absent: why a check is missing.
        tools: some of what it lists.
        asking_tools: those that it lists to clients that can be asked.
        resources: some of their URIs.
        prompts: some of their names.
    """

    steps: dict[Check, Step]
    tools: tuple[str, ...]
    resources: tuple[str, ...]
    prompts: tuple[str, ...]
    asking_tools: tuple[str, ...] = ()
    absent: dict[Check, str] = {}


def _accept(**content: Any) -> Json:
    return {"action": "accept", "content": content}


_DECLINE: Json = {"action": "decline"}

OURS = Profile(
    steps={
        "add": Step(tool="add", arguments={"a": 2, "b": 3}, says="5"),
        "accept": Step(
            tool="ask_once",
            arguments={"what": "T-1"},
            questions=("Close T-1?",),
            answers=(_accept(confirm=True),),
            says="closed T-1",
        ),
        "decline": Step(
            tool="ask_once",
            arguments={"what": "T-2"},
            questions=("Close T-2?",),
            answers=(_DECLINE,),
            says="kept T-2",
        ),
        "twice": Step(
            tool="ask_twice",
            arguments={"what": "tea"},
            questions=("Who orders tea?", "How many tea for Ada?"),
            answers=(_accept(name="Ada"), _accept(count=3)),
            says="3 tea for Ada",
        ),
        "progress": Step(tool="count_up", arguments={"steps": 3}, steps=3, says="counted to 3"),
    },
    tools=("add", "ask_once", "ask_twice", "count_up"),
    resources=("matrix://note",),
    prompts=("greet",),
)
"""The servers that are written here."""

_EVERYTHING_ASKS = "Please provide inputs for the following fields:"
EVERYTHING = Profile(
    steps={
        "add": Step(tool="get-sum", arguments={"a": 2, "b": 3}, says="The sum of 2 and 3 is 5."),
        "accept": Step(
            tool="trigger-elicitation-request",
            arguments={},
            questions=(_EVERYTHING_ASKS,),
            answers=(_accept(name="Ada", integer=7),),
            says="- Name: Ada",
        ),
        "decline": Step(
            tool="trigger-elicitation-request",
            arguments={},
            questions=(_EVERYTHING_ASKS,),
            answers=(_DECLINE,),
            says="User declined",
        ),
        "progress": Step(
            tool="trigger-long-running-operation",
            arguments={"duration": 0.3, "steps": 3},
            steps=3,
            says="Long running operation completed",
        ),
    },
    absent={"twice": "it has no tool that asks twice"},
    tools=("get-sum", "trigger-long-running-operation"),
    asking_tools=("trigger-elicitation-request",),
    resources=("demo://resource/static/document/architecture.md",),
    prompts=("simple-prompt",),
)
"""The reference server of everything. It lists the tool that asks to clients that declare `elicitation`."""
