"""The kinds of client: what they are, and that a bridge serves each of them."""

import pytest

from bridge import Bridge, Context
from bridge.asking.reasons import REASONS
from bridge.asking.routes import ClientRule, RouteName, choose, sees_fallback
from bridge.kinds import kind_named
from bridge.protocol.revisions import REVISIONS
from bridge.testing import KINDS, ClientKind, accept, connect
from tests.conftest import Serve


def test_every_revision_has_a_kind_and_no_name_is_there_twice() -> None:
    assert {kind.revision for kind in KINDS} == set(REVISIONS)
    assert len({kind.name for kind in KINDS}) == len({kind.title for kind in KINDS}) == len(KINDS) == 7


def test_a_kind_is_found_by_its_name() -> None:
    assert kind_named("2025-03-26").revision == "2025-03-26"
    with pytest.raises(KeyError, match="modern-forms"):
        kind_named("fax")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
async def test_a_client_of_each_kind_is_served_as_its_route_says(kind: ClientKind, serve: Serve) -> None:
    bridge = Bridge("asks", elicitation=True)

    @bridge.tool
    async def ask(ctx: Context) -> bool:
        return (await ctx.elicit("Sure?", bool)).content is True

    app = await serve(bridge)
    route = choose(kind.profile, "form").route
    async with connect(app, revision=kind.revision, capabilities=kind.capabilities, info=kind.info) as mcp:
        mcp.on_elicitation(lambda asked: accept({"confirm": True}))
        names = [tool["name"] for tool in await mcp.tools.list()]
        assert ("sendElicitationResult" in names) is sees_fallback(kind.profile) is (route is RouteName.CHAT)
        if route is not RouteName.REFUSE:
            assert (await mcp.tools.call("ask")).json() is True


@pytest.mark.parametrize("mode", ["form", "url", "sampling", "roots"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_reason_that_a_route_has_is_explained(kind: ClientKind, mode: str) -> None:
    rule = ClientRule(route=RouteName.CHAT)
    choices = [
        choose(kind.profile, mode),
        choose(kind.profile, mode, {mode: "answered_with_error -32601"}),
        choose(kind.profile, mode, {mode: "no_stream"}),
        choose(kind.profile, mode, rules=(rule,)),
    ]
    for choice in choices:
        reason = REASONS[choice.reason.partition(" ")[0]]
        assert reason.meaning.endswith(".")
        assert reason.setting or choice.route in (RouteName.PUSH, RouteName.ROUNDS)


@pytest.mark.parametrize(
    ("capabilities", "revision", "mode", "reason"),
    [
        ({"elicitation": {"url": {}}}, "2026-07-28", "form", "client_did_not_declare_form"),
        ({"elicitation": {"form": {}}}, "2025-11-25", "url", "client_did_not_declare_url"),
        ({"elicitation": {}}, "2025-06-18", "url", "revision_before_2025-11-25"),
        ({"elicitation": {}}, "2025-03-26", "url", "revision_before_2025-06-18"),
        ({"elicitation": []}, "2025-11-25", "form", "client_did_not_declare_elicitation"),
        ({}, "2025-11-25", "roots", "client_did_not_declare_roots"),
    ],
)
def test_what_is_missing_is_named_exactly(
    capabilities: dict[str, object], revision: str, mode: str, reason: str
) -> None:
    kind = ClientKind(name="k", title="k", revision=revision, capabilities=capabilities)
    assert choose(kind.profile, mode).reason == reason
