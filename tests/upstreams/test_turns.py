"""Turns: one call at a time, in the order of asking; whoever leaves is never counted."""

import anyio
import pytest

from bridge.upstreams import turns as module
from bridge.upstreams.turns import TooManyQueued, Turns

behaviour = pytest.mark.behaviour


@behaviour("UPS-5")
async def test_one_call_at_a_time_is_active_in_the_order_of_asking() -> None:
    turns, order = Turns(), list[int]()

    async def call(number: int) -> None:
        await turns.take(number)
        order.append(number)
        assert turns.only == number
        await anyio.lowlevel.checkpoint()
        turns.leave(number)

    async with anyio.create_task_group() as tasks:
        for number in range(1, 20):
            tasks.start_soon(call, number)
    assert order == list(range(1, 20))
    assert turns.only is None


@behaviour("UPS-5")
async def test_a_call_that_stops_waiting_for_its_turn_leaves_the_queue() -> None:
    turns = Turns()
    await turns.take(1)
    with anyio.move_on_after(0):
        await turns.take(2)
    turns.leave(1)
    assert turns.only is None
    await turns.take(3)
    assert turns.only == 3


@behaviour("UPS-5")
async def test_a_turn_that_comes_to_a_call_that_is_gone_is_passed_on() -> None:
    turns = Turns()
    await turns.take(1)
    async with anyio.create_task_group() as tasks:
        second = anyio.CancelScope()

        async def wait() -> None:
            try:
                with second:
                    await turns.take(2)
                    await anyio.lowlevel.checkpoint()
            finally:
                turns.leave(2)

        tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        turns.leave(1)  # the turn is the second's now
        second.cancel()
    assert turns.only is None


@behaviour("UPS-5")
async def test_several_at_once_wait_for_nothing_and_are_not_told_apart() -> None:
    turns = Turns(several=True)
    await turns.take(1)
    assert turns.only == 1
    await turns.take(2)
    assert turns.only is None
    turns.leave(1)
    assert turns.only == 2
    turns.doubts += 1
    assert turns.only is None


@behaviour("UPS-5", "UPS-11")
async def test_the_queue_has_a_bound_but_not_for_who_was_active_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_QUEUED", 1)
    turns = Turns()
    await turns.take(1)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(turns.take, 2)
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(TooManyQueued):
            await turns.take(3)
        with anyio.move_on_after(0.01) as waited:
            await turns.take(4, again=True)
        assert waited.cancelled_caught
        turns.leave(1)
        await anyio.wait_all_tasks_blocked()
        assert turns.has(2)
