"""Any program of tasks that ask: answers never pair wrongly, it comes to its end, and steps run once."""

import asyncio
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, TypeAlias

import anyio
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from bridge import Bridge, Context
from bridge.asking.journal import ROOT, Asked, Journal, Replay
from bridge.asking.question import Reply
from bridge.testing import Asked as AskedOfUser
from bridge.testing import accept, connect

behaviour = pytest.mark.behaviour

SHARED = "The same for all?"
MAX_CHANGES = 2


class Ask(NamedTuple):
    """A question. Its text changes in the run `changes_in`; `echoes`: it holds the answer before it in its task."""

    message: str
    key: str | None
    changes_in: int | None
    echoes: bool

    def text(self, run: int, before: str) -> str:
        """What is asked in a run, after an answer."""
        changed = " (changed)" if self.changes_in is not None and run >= self.changes_in else ""
        return f"{self.message}{changed}" + (f" after {before}" if self.echoes else "")


class Step(NamedTuple):
    """A step."""

    name: str


class Tasks(NamedTuple):
    """Tasks side by side."""

    kind: Literal["group", "gather"]
    programs: list[Any]


Program: TypeAlias = list[Ask | Step | Tasks]
SHAPES = st.recursive(
    st.lists(st.sampled_from(["ask", "same", "keyed", "shared", "step"]), min_size=1, max_size=3),
    lambda inner: st.lists(
        st.sampled_from(["ask", "same", "keyed", "step"])
        | st.tuples(st.sampled_from(["group", "gather"]), st.lists(inner, min_size=1, max_size=3)),
        min_size=1,
        max_size=3,
    ),
    max_leaves=5,
)


def questions(program: Program) -> list[Ask]:
    """All questions of a program."""
    found: list[Ask] = []
    for part in program:
        if isinstance(part, Ask):
            found.append(part)
        elif isinstance(part, Tasks):
            found += [ask for inner in part.programs for ask in questions(inner)]
    return found


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """A program whose questions can be told apart, as the author's rules demand."""
    count = Counter[str]()
    changes = draw(st.lists(st.integers(1, 4), max_size=MAX_CHANGES))

    def number(what: str) -> str:
        count[what] += 1
        return f"{what}{count[what]}"

    def build(shape: list[Any]) -> Program:
        program: Program = []
        before = number("Q") + "?"
        for part in shape:
            if isinstance(part, tuple):
                tasks = Tasks(part[0], [build(inner) for inner in part[1]])
                program.append(tasks)
                # What was asked in a task may be asked once more when that is over.
                inside = [ask.message for ask in questions([tasks]) if ask.key is None]
                before = draw(st.sampled_from(inside)) if inside else number("Q") + "?"
            elif part == "step":
                program.append(Step(number("s")))
            else:
                changes_in = changes.pop() if changes and draw(st.booleans()) else None
                if part in ("keyed", "shared"):
                    message = SHARED if part == "shared" else number("K") + "?"
                    program.append(Ask(message, number("key"), changes_in, draw(st.booleans())))
                else:
                    # `same`: once more what was asked last in this task, with no key.
                    before = before if part == "same" else number("Q") + "?"
                    program.append(Ask(before, None, changes_in, part != "same" and draw(st.booleans())))
        return program

    return build(draw(SHAPES))


class Stopped(Exception):
    """A task has stopped at a question, or was broken off because another did."""


class Runs:
    """Runs a program over `Replay`, run after run, its tasks in an order that differs each time."""

    def __init__(self, program: Program, dice: random.Random) -> None:
        self.program = program
        self.dice = dice
        self.journal = Journal()
        self.run = 0
        self.chains: dict[str, list[Any]] = {}
        """What was asked before each question in its task, by path."""
        self.texts: dict[str, str] = {}
        self.met: set[str] = set()
        """The paths of this run."""
        self.told: dict[str, str] = {}
        """Each answer, by path: it names the text and the key that the user saw."""
        self.steps = Counter[str]()

    def to_the_end(self) -> None:
        while True:
            # What a journal keeps is what is sealed and stored.
            self.journal = msgspec.msgpack.decode(msgspec.msgpack.encode(self.journal), type=Journal)
            replay = Replay(self.journal)
            self.met.clear()
            try:
                for _ in self.task(replay, self.program, ROOT, []):
                    pass
            except Stopped:
                self.answer(replay)
                self.run += 1
            else:
                assert not replay.open
                return
            assert self.run <= len(self.told), "each run is answered something new"

    def answer(self, replay: Replay) -> None:
        assert replay.open
        keys = sorted(replay.open)
        for key in self.dice.sample(keys, self.dice.randint(1, len(keys))):
            question = replay.open[key]
            assert question.key == key
            assert question.path not in self.told, "an answered question is not asked again"
            self.told[question.path] = f"{question.message}|{key}"
            replay.journal.record(question, Reply("accept", self.told[question.path]))

    def task(self, replay: Replay, program: Program, after: str, chain: list[Any]) -> Iterator[None]:
        before = "nothing"
        for part in program:
            yield
            if isinstance(part, Step):
                replay.enter_step(part.name)
                if part.name not in replay.journal.steps:
                    self.steps[part.name] += 1
                    replay.record_step(part.name, self.steps[part.name])
                assert replay.journal.steps[part.name] == 1
            elif isinstance(part, Tasks):
                yield from self.side_by_side(
                    [self.task(replay, inner, after, chain) for inner in part.programs], part.kind
                )
            else:
                after, before = self.ask(replay, part, after, chain, before)
                chain = [*chain, before]

    def side_by_side(self, tasks: list[Iterator[None]], kind: str) -> Iterator[None]:
        stopped = False
        while tasks:
            task = self.dice.choice(tasks)
            try:
                next(task)
            except StopIteration:
                tasks.remove(task)
            except Stopped:
                stopped = True
                tasks.remove(task)
                if kind == "group" and self.dice.random() < 0.5:
                    break  # The others were broken off before they came to ask.
            yield
        if stopped:
            raise Stopped

    def ask(self, replay: Replay, part: Ask, after: str, chain: list[Any], before: str) -> tuple[str, str]:
        text = part.text(self.run, before)
        path, question, reply = replay.ask(after, Asked(digest="form", message=text), part.key)
        assert question.message == text
        assert question.key == (part.key or question.key)
        assert self.texts.setdefault(path, text) == text
        assert path not in self.met, "two questions of one run are never on one path"
        self.met.add(path)
        assert self.chains.setdefault(path, chain) == chain, "an answer counts only after what was asked before it"
        if reply is None:
            assert replay.open[question.key] == question
            raise Stopped
        assert reply.content == self.told[path] == f"{text}|{question.key}"
        return path, reply.content


@behaviour("ASK-3", "ASK-5", "ASK-6", "ASK-8")
@settings(max_examples=400)
@given(program=programs(), dice=st.randoms(use_true_random=False))
def test_answers_pair_rightly_and_every_program_comes_to_its_end(program: Program, dice: random.Random) -> None:
    runs = Runs(program, dice)
    runs.to_the_end()
    asked = questions(program)
    changes = sum(ask.changes_in is not None for ask in asked)
    assert runs.run <= len(runs.told) <= len(asked) * (1 + changes)
    assert all(times == 1 for times in runs.steps.values())
    assert len(set(runs.journal.asked.values())) == len(runs.journal.asked), "each key names one question"


@behaviour("ASK-3")
@given(
    keys=st.lists(
        st.none() | st.sampled_from(["elicitation-1", "elicitation-2", "elicitation-3", "a"]), min_size=1, max_size=6
    )
)
def test_no_two_questions_share_a_key_whatever_keys_an_author_gives(keys: list[str | None]) -> None:
    from bridge.errors import QuestionError

    journal = Journal()
    seen: dict[str, int] = {}
    for _ in keys:
        replay, after = Replay(journal), ROOT
        for index, key in enumerate(keys):
            try:
                after, question, reply = replay.ask(after, Asked(digest="form", message=f"{index}?"), key)
            except QuestionError:
                assert key is not None
                assert key in list(seen)
                return
            assert seen.setdefault(question.key, index) == index
            if reply is None:
                journal.record(question, Reply("accept", index))
                break
            assert reply.content == index


class Said(BaseModel):
    """An answer that says what it answers."""

    to: str


async def play(ctx: Context, program: Program, effects: Counter[str], dice: random.Random, told: list[str]) -> None:
    """Run a program as a tool does."""
    before = "nothing"

    def act(name: str) -> str:
        effects[name] += 1
        return name

    for part in program:
        for _ in range(dice.randint(0, 3)):
            await anyio.lowlevel.checkpoint()
        if isinstance(part, Step):
            assert await ctx.step(part.name, lambda name=part.name: act(name)) == part.name
        elif isinstance(part, Tasks):
            rest = [play(ctx, inner, effects, dice, told) for inner in part.programs]
            if part.kind == "gather":
                await asyncio.gather(*rest)
            else:
                async with asyncio.TaskGroup() as tasks:
                    for coroutine in rest:
                        tasks.create_task(coroutine)
        else:
            text = part.text(0, before)
            answer = await ctx.elicit(text, Said, key=part.key)
            before = answer.content.to
            assert before.startswith(f"{text}|")
            told.append(before)


async def call(program: Program, seed: int, client: dict[str, Any]) -> tuple[Any, Counter[str], list[str], int]:
    """Call a tool that is the program; return its result, what its steps did, the answers it got, and its runs."""
    bridge = Bridge("program", elicitation=True)
    effects, told = Counter[str](), list[list[str]]()

    @bridge.tool
    async def tool(ctx: Context) -> str:
        # A list for each run: tasks of a run that has stopped may go on for a while.
        told.append([])
        await play(ctx, program, effects, random.Random(seed + len(told)), told[-1])
        return "done"

    def answer(asked: AskedOfUser) -> Any:
        return accept({"to": f"{asked.message}|{len(mcp.asked)}"})

    async with connect(bridge, **client) as mcp:
        mcp.on_elicitation(answer)
        result = await mcp.tools.call("tool")
        assert len({asked.message for asked in mcp.asked} - {SHARED}) <= len(questions(program))
        return result, effects, told[-1], len(told)


CLIENTS = [{"revision": "2026-07-28"}, {"revision": "2025-11-25"}, {"revision": "2025-03-26"}]


@behaviour("ASK-3", "ASK-6", "ASK-8")
@pytest.mark.parametrize("client", CLIENTS, ids=["rounds", "push", "chat"])
@settings(max_examples=25)
@given(program=programs().filter(lambda program: len(questions(program)) <= 9), seed=st.integers(0, 99))
async def test_tools_that_ask_from_many_tasks_come_to_their_end(
    client: dict[str, Any], program: Program, seed: int
) -> None:
    result, effects, told, runs = await call(program, seed, client)
    asked = questions(program)
    assert not result.is_error, result.text()
    assert len(told) == len(asked)
    assert len(set(told)) == len(asked), "no answer went to two questions"
    assert runs <= len(asked) + 1
    assert all(times == 1 for times in effects.values()), effects
