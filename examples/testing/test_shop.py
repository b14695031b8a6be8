"""Tests of the shop. Run them in this folder: `python -m pytest`."""

import pytest
from shop import Till

from bridge.testing import RpcError, Tester, accept, decline


async def test_a_yes_buys(mcp: Tester) -> None:
    mcp.answers([True])
    assert (await mcp.tools.call("buy", {"amount": 5})).text() == "Bought for 5."


@pytest.mark.mcp_clients(asked=True)
async def test_every_client_that_can_be_asked_is(mcp_each_client: Tester) -> None:
    mcp = mcp_each_client
    mcp.answers({"where": {"street": "Main Street 1", "express": True}, "express": decline()})
    result = await mcp.tools.call("deliver", {"article": "a lamp"})
    assert result.text() == "a lamp goes to Main Street 1, by ordinary mail."
    assert [asked.message for asked in mcp.asked] == ["Where does a lamp go?", "Pay 10 for express?"]


@pytest.mark.mcp_clients("modern")
async def test_a_client_that_cannot_be_asked_is_told(mcp: Tester) -> None:
    with pytest.raises(RpcError) as refused:
        await mcp.tools.call("buy", {"amount": 5})
    assert refused.value.code == -32021


async def test_money_is_put_aside_once(mcp: Tester, till: Till) -> None:
    for name in ("reserve", "charge", "release"):
        mcp.effects.watch(till, name)
    await mcp.assert_effects_once("buy", {"amount": 5}, answers=[True])
    await mcp.assert_effects_once("buy", {"amount": 5}, answers=[decline()])


async def test_the_wire_stays_as_it_is(mcp_each_client: Tester) -> None:
    mcp_each_client.on_elicitation(lambda asked: accept({"confirm": True}))
    if mcp_each_client.can_be_asked:
        await mcp_each_client.tools.call("buy", {"amount": 5})
    else:
        with pytest.raises(RpcError):
            await mcp_each_client.tools.call("buy", {"amount": 5})
    mcp_each_client.assert_wire()


async def test_calls_that_wait_survive_a_deploy(mcp: Tester) -> None:
    mcp.answers([True])
    await mcp.tools.call("buy", {"amount": 5})
    mcp.save_history("histories/buy.json")
    assert (await mcp.replay("histories/buy.json")).text() == "Bought for 5."
