"""A modern server over one pipe: whose reply, whose progress, whose log, and what is said when a request ends early."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from bridge.errors import UpstreamLost, UpstreamUnreachable
from bridge.protocol.revisions import MODERN
from bridge.upstreams.base import Finished
from bridge.upstreams.links import Facts
from bridge.upstreams.remote import Command
from bridge.upstreams.remote.modern import ModernLink
from bridge.upstreams.remote.multiplexing import WireCarrier
from bridge.upstreams.remote.stdio import StdioWire
from tests.upstreams.remote.session import SECONDS, until
from tests.upstreams.remote.talks import HELLO, Heard, News

behaviour = pytest.mark.behaviour

SERVER = """
import json, sys
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
def say(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
def tell(method, **params):
    say(method=method, params=params)
waiting = []
for message in map(json.loads, sys.stdin):
    method, params, identity = message["method"], message["params"], message.get("id")
    token = params.get("_meta", {}).get("progressToken")
    if method == "exit":
        sys.exit(7)
    elif method == "hold":
        waiting.append((identity, token))
        print("holding", file=sys.stderr, flush=True)
    elif method == "release":
        for held, its_token in reversed(waiting):
            if its_token is not None:
                tell("notifications/progress", progressToken=its_token, progress=held)
            tell("notifications/message", level="info", data="log")
            say(id=held, result={"held": held})
        say(id=identity, result={})
    elif method == "subscriptions/listen":
        tell("notifications/subscriptions/acknowledged", _meta={SUBSCRIPTION: identity}, notifications={})
        tell("notifications/resources/updated", _meta={SUBSCRIPTION: identity}, uri="a:1")
        tell("notifications/resources/updated", _meta={SUBSCRIPTION: 12345}, uri="another's")
        say(id="not-allowed", method="elicitation/create", params={})
    else:
        print("told", method, json.dumps(params), file=sys.stderr, flush=True)
        if identity is not None:
            say(id=identity, result={"headers": "none"})
"""


@asynccontextmanager
async def linked(news: News | None = None, **capabilities: Any) -> AsyncIterator[ModernLink]:
    carrier = WireCarrier(StdioWire(Command(sys.executable, ("-c", SERVER))), "peer")
    await carrier.open()
    link = ModernLink(carrier, Facts(revision=MODERN, capabilities=capabilities, info={}), HELLO, news or News())
    try:
        yield link
    finally:
        await link.aclose()


@pytest.fixture(autouse=True)
def stderr(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "bridge.upstream.stderr")


async def said(caplog: pytest.LogCaptureFixture, text: str, times: int = 1) -> None:
    await until(lambda: caplog.text.count(text) >= times)


async def test_replies_and_progress_find_their_requests_whatever_their_order(caplog: pytest.LogCaptureFixture) -> None:
    talks = [Heard(wants_progress=True), Heard(), Heard(wants_progress=True, log_level="info")]
    async with linked() as link:
        waiting = [asyncio.ensure_future(link.request("hold", {}, talk)) for talk in talks]
        await said(caplog, "holding", 3)
        await link.request("release", {})
        replies = await asyncio.gather(*waiting)
    assert replies == [Finished({"held": held}) for held in (1, 2, 3)]
    assert [[step[0] for step in talk.progressed] for talk in talks] == [[1], [], [3]]
    assert [len(talk.logged) for talk in talks[:2]] == [0, 0]


async def test_a_log_message_that_may_be_of_either_of_two_callers_is_given_to_none(
    caplog: pytest.LogCaptureFixture,
) -> None:
    talks = [Heard(log_level="info"), Heard(log_level="info")]
    async with linked() as link:
        waiting = [asyncio.ensure_future(link.request("hold", {}, talk)) for talk in talks]
        await said(caplog, "holding", 2)
        await link.request("release", {})
        await asyncio.gather(*waiting)
    # The second was answered first; what came after that is the first one's.
    assert talks[1].logged == []


@behaviour("UPS-7")
async def test_an_exit_loses_what_is_under_way_and_closes_the_link(caplog: pytest.LogCaptureFixture) -> None:
    async with linked() as link:
        waiting = asyncio.ensure_future(link.request("hold", {}))
        await said(caplog, "holding")
        with pytest.raises(UpstreamLost, match="peer: the command exited with 7"):
            await link.request("exit", {})
        with pytest.raises(UpstreamLost, match="exited with 7"):
            await waiting
        assert not link.is_open
        with pytest.raises(UpstreamUnreachable, match="exited with 7"):
            await link.request("hold", {})


@behaviour("UPS-9")
@pytest.mark.parametrize("how", ["scope", "task", "close"])
async def test_a_request_that_ends_early_is_cancelled_at_the_server(how: str, caplog: pytest.LogCaptureFixture) -> None:
    async with linked() as link:
        if how == "scope":
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(link.request, "hold", {})
                await said(caplog, "holding")
                tasks.cancel_scope.cancel()
        else:
            waiting = asyncio.ensure_future(link.request("hold", {}))
            await said(caplog, "holding")
            if how == "task":
                waiting.cancel()
                await asyncio.wait([waiting])
                assert waiting.cancelled()
            else:
                await link.aclose()
                with pytest.raises(UpstreamLost, match="closed"):
                    await waiting
        await said(caplog, 'told notifications/cancelled {"requestId": 1}')
        if how != "close":
            assert await link.request("any", {}) == Finished({"headers": "none"})


async def test_a_subscription_hears_only_what_is_its_own(caplog: pytest.LogCaptureFixture) -> None:
    news = News()
    async with linked(news, resources={"subscribe": True}) as link:
        await link.request("resources/subscribe", {"uri": "a:1"})
        with anyio.fail_after(SECONDS):
            assert await news.heard.get() == ("notifications/resources/updated", {"uri": "a:1"})
        await link.request("resources/unsubscribe", {"uri": "a:1"})
        await said(caplog, 'told notifications/cancelled {"requestId": 1}')
        assert news.heard.empty()
    assert "no modern server sends" in caplog.text
