"""Answers that a test writes down before it calls: in order, or by what they answer. It knows no client."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec
import pydantic
from pydantic_core import to_jsonable_python

from bridge.asking.dialects import fill_boxes
from bridge.asking.question import ACTIONS, Question
from bridge.protocol.messages import Json
from bridge.testing.answers import Asked, accept, decline

__all__ = ["AnswerMissing", "Answers", "AnswersUnused", "Script"]

Answers: TypeAlias = Sequence[Any] | Mapping[str, Any]
"""A list, in the order of the questions; or a dict from a question's key, or its text, to its answer."""

_RESULT_FIELDS: Final = {"action", "content"}


class AnswerMissing(AssertionError):
    """A question was asked for which the script has no answer."""


class AnswersUnused(AssertionError):
    """Answers were written down that no question asked for."""


class Script:
    """Answers of one test.

    Args:
        answers: see `Answers`. An answer is what `accept`, `decline` or `cancel` returns; a dict, model, dataclass or
            Struct, which fills the form in; any other value, which fills the form's only field in; or a function from
            an `Asked` to one of those. A page is opened by True, and refused by False.
        find: finds the question behind what a client was asked, for its key; None where it is not known.
    """

    def __init__(self, answers: Answers, find: Callable[[Asked], Question | None] = lambda asked: None) -> None:
        if isinstance(answers, str | bytes) or not isinstance(answers, Sequence | Mapping):
            raise TypeError(f"answers must be a list, or a dict from keys or texts to answers, not {answers!r}")
        self._ordered = None if isinstance(answers, Mapping) else list(answers)
        self._named = dict(answers) if isinstance(answers, Mapping) else {}
        self._used: set[str] = set()
        self._asked: list[str] = []
        self._find = find

    async def __call__(self, asked: Asked) -> Json:
        """Answer one question.

        Raises:
            AnswerMissing: nothing is written down for it.
        """
        question = self._find(asked)
        answer = self._next(asked) if self._ordered is not None else self._of(asked, question)
        self._asked.append(asked.message)
        if callable(answer) and not isinstance(answer, type):
            answer = answer(asked)
            answer = await answer if inspect.isawaitable(answer) else answer
        return _result(asked, question, answer)

    def check_used(self) -> None:
        """Check that every answer was asked for.

        Raises:
            AnswersUnused: some were not.
        """
        unused = [repr(answer) for answer in self._ordered or ()]
        unused += [f"{name!r}: {self._named[name]!r}" for name in self._named if name not in self._used]
        if unused:
            asked = "\n".join(f"  {message!r}" for message in self._asked) or "  nothing"
            raise AnswersUnused(f"answers that no question asked for: {', '.join(unused)}\nasked was:\n{asked}")

    def _next(self, asked: Asked) -> Any:
        assert self._ordered is not None
        if not self._ordered:
            raise AnswerMissing(
                f"no answer is left for question {len(self._asked) + 1}, {asked.message!r}: add one to the list"
            )
        return self._ordered.pop(0)

    def _of(self, asked: Asked, question: Question | None) -> Any:
        names = (asked.message,) if question is None else (question.key, question.message, asked.message)
        for name in names:
            if name in self._used and not callable(self._named[name]):
                raise AnswerMissing(
                    f"{name!r} is asked again, and its answer is used: {asked.message!r}. Give a function as the "
                    "answer where a question comes more than once"
                )
            if name in self._named:
                self._used.add(name)
                return self._named[name]
        known = ", ".join(map(repr, self._named)) or "nothing"
        key = "" if question is None else f" (its key is {question.key!r})"
        raise AnswerMissing(f"no answer is written down for {asked.message!r}{key}; there is one for {known}")


def _result(asked: Asked, question: Question | None, answer: Any) -> Json:
    """An answer as an `ElicitResult`."""
    if isinstance(answer, Mapping) and answer.get("action") in ACTIONS and answer.keys() <= _RESULT_FIELDS:
        return dict(answer)
    if asked.url is not None:
        return decline() if answer is False else accept()
    if isinstance(answer, pydantic.BaseModel | msgspec.Struct) or hasattr(answer, "__dataclass_fields__"):
        answer = msgspec.to_builtins(answer) if isinstance(answer, msgspec.Struct) else to_jsonable_python(answer)
    whole = asked.schema if question is None or question.schema is None else question.schema
    if not isinstance(answer, Mapping):
        fields = list(whole.get("properties", {}))
        if len(fields) != 1:
            raise AnswerMissing(
                f"{answer!r} does not say which field of {asked.message!r} it fills in; there are {', '.join(fields)}: "
                "give a dict"
            )
        answer = {fields[0]: to_jsonable_python(answer)}
    return accept(fill_boxes(whole, dict(answer), asked.schema))
