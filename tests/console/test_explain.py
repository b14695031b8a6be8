"""`/explain` and the log: why each client is asked as it is."""

import logging

import anyio
import pytest

from bridge import Bridge, ClientRule, RouteName
from bridge.explaining import Explainer
from bridge.pages.explain import Explain
from bridge.stores import Store
from bridge.testing import connect
from tests.console.conftest import BEARER, SECRETS, Desk, Serve, make


@pytest.mark.parametrize(
    ("kind", "routes"),
    [
        ("2025-11-25-forms-urls", {"form": ("push", "client_declared_it"), "url": ("push", "client_declared_it")}),
        (
            "2025-06-18-forms",
            {"form": ("push", "client_declared_it"), "url": ("chat", "revision_before_2025-11-25")},
        ),
        ("2025-06-18-chat", {"form": ("chat", "client_did_not_declare_elicitation")}),
        ("2025-03-26", {"form": ("chat", "revision_before_2025-06-18")}),
        ("2024-11-05", {"sampling": ("refuse", "client_did_not_declare_sampling")}),
    ],
)
async def test_a_live_session_is_explained(desk: Desk, kind: str, routes: dict[str, tuple[str, str]]) -> None:
    async with desk.client(kind) as client:
        [session] = (await desk.get("/explain"))["sessions"]
        assert session["revision"] == client.revision.name
        assert session["client"] == {"name": kind, "version": "1"}
        assert session["capabilities"] == client.capabilities
        found = {one["mode"]: (one["route"], one["reason"]) for one in session["routes"]}
        assert {mode: found[mode] for mode in routes} == routes
        assert all(one["meaning"] for one in session["routes"])
        assert session["questions"] == []


async def test_a_modern_client_has_no_session_to_explain(desk: Desk) -> None:
    async with desk.client("modern-forms") as client:
        await client.tools.list()
        assert (await desk.get("/explain"))["sessions"] == []


@pytest.mark.parametrize(("kind", "route"), [("2025-06-18-forms", "push"), ("2025-06-18-chat", "chat")])
async def test_an_open_question_is_told_with_its_age_by_any_node(
    desks: Serve, store: Store, kind: str, route: str
) -> None:
    asking, other = await desks(store), await desks(store)
    async with asking.asking(kind):
        [session] = (await other.get("/explain"))["sessions"]
        [question] = session["questions"]
        assert (question["route"], question["tool"], question["mode"]) == (route, "delete", "form")
        assert 0 <= question["age_seconds"] < 30
        assert question["held"] is False


async def test_the_age_of_a_question_is_counted_from_its_asking(desk: Desk) -> None:
    async with desk.asking("2025-06-18-chat"):
        later = Explainer(desk.bridge.store, desk.bridge.options, clock=lambda: 0.0)
        [session] = (await later.explain()).sessions
        assert session.questions[0].age_seconds == 0.0, "a clock that is behind makes nothing negative"


@pytest.mark.parametrize("kind", ["2025-06-18-forms", "2025-06-18-chat"])
async def test_nothing_of_what_was_asked_passed_or_of_ids_is_told(desk: Desk, kind: str) -> None:
    async with desk.asking(kind), desk.browser(**BEARER) as browser:
        for path in ("/explain", "/console"):
            for accept in ("application/json", "text/html"):
                text = (await browser.get(path, headers={"accept": accept})).text
                assert "delete" in text
                for secret in (*SECRETS, BEARER["authorization"].split()[1]):
                    assert secret not in text
                keys = await desk.bridge.store.scan("session") + await desk.bridge.store.scan("ask")
                keys += await desk.bridge.store.scan("pending")
                assert keys
                for key in keys:
                    for part in key.split("/")[-2:]:
                        assert part == "anonymous" or part not in text


async def test_what_was_learned_of_a_client_is_the_reason_from_then_on(desk: Desk) -> None:
    async with desk.client("2025-06-18-forms") as client:

        async def unable(request: dict[str, object]) -> None:
            answer = {"error": {"code": -32601, "message": "Method not found"}}
            await (await client._post({"jsonrpc": "2.0", "id": request["id"], **answer}, None)).closed()

        client._serve = unable  # type: ignore[method-assign, assignment]
        await client.request("tools/call", {"name": "delete", "arguments": {"what": "x"}})
        [session] = (await desk.get("/explain"))["sessions"]
        form = session["routes"][0]
        assert (form["route"], form["reason"]) == ("chat", "answered_with_error -32601")
        assert form["setting"].startswith("Mend the client")


@pytest.mark.parametrize(
    ("options", "route", "reason"),
    [
        ({"client_rules": (ClientRule(name="2025-06-18-forms", route=RouteName.CHAT),)}, "chat", "operator_rule"),
        ({"elicitation": False}, "refuse", "elicitation_switched_off"),
        ({"fallback": "off"}, "push", "client_declared_it"),
    ],
)
async def test_what_the_operator_decided_is_the_reason(options: dict[str, object], route: str, reason: str) -> None:
    bridge = Bridge("desk", **{"elicitation": True, **options})  # type: ignore[arg-type]
    app = bridge.asgi()
    async with app.lifespan(), connect(app, revision="2025-06-18", info={"name": "2025-06-18-forms"}):
        [session] = (await Explainer(bridge.store, bridge.options).explain()).sessions
    assert (session.route("form").route, session.route("form").reason) == (route, reason)


async def test_sessions_are_found_by_client_and_revision(desk: Desk) -> None:
    async with (
        desk.client("2025-03-26"),
        desk.client("2024-11-05", info={"name": "An Old One"}),
        desk.client("2024-11-05"),
    ):
        explained = await desk.get("/explain?client=old")
        assert [one["client"]["name"] for one in explained["sessions"]] == ["An Old One"]
        assert (explained["looked_at"], explained["in_all"]) == (3, 3)
        assert len((await desk.get("/explain?revision=2024-11-05"))["sessions"]) == 2
        assert explained["by_revision"] == {"2025-03-26": 1, "2024-11-05": 2}


async def test_whatever_a_client_calls_itself_is_text_on_the_page(desk: Desk) -> None:
    info = {"name": "<script>alert(1)</script>", "version": ["x"] * 100}
    async with desk.client("2025-03-26", info=info), desk.browser(**BEARER) as browser:
        for path in ("/explain", "/console"):
            page = (await browser.get(path, headers={"accept": "text/html"})).text
            assert "&lt;script&gt;" in page
            assert "<script>" not in page


async def test_without_the_token_nothing_is_told_also_on_loopback(desk: Desk) -> None:
    async with desk.client("2025-03-26"), desk.browser() as browser:
        reply = await browser.get("/explain")
        assert reply.status_code == 401
        assert reply.headers["www-authenticate"].startswith("Bearer")
        assert "2025-03-26" not in reply.text


async def test_a_demo_explains_to_everybody_who_names_its_host() -> None:
    bridge = make(None, lambda: None)  # type: ignore[arg-type, return-value]
    app = bridge.asgi()
    desk = Desk(Explain(app, bridge.store, bridge.options, None), bridge)
    async with app.lifespan(), desk.client("2025-03-26"), desk.browser() as browser:
        assert len((await browser.get("/explain")).json()["sessions"]) == 1
        assert (await browser.get("/explain", headers={"host": "evil.example"})).status_code == 421


async def test_the_log_says_once_for_each_session_how_it_is_asked_and_why(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "bridge.sessions")
    async with desk.client("2025-03-26", info={"name": "a\nb"}) as client:
        await client.tools.list()
        await client.tools.call("delete", {"what": "x"})
    lines = [record.getMessage() for record in caplog.records if "asked by" in record.getMessage()]
    assert len(lines) == 1
    assert lines[0].endswith(r"'a\nb', 2025-03-26: asked by chat (revision_before_2025-06-18)")
    assert client.session_id is not None
    assert client.session_id not in caplog.text


async def test_many_sessions_are_told_up_to_a_bound_those_that_ask_first(desk: Desk) -> None:
    async with anyio.create_task_group() as tasks, desk.asking("2025-06-18-chat"):
        ready = [anyio.Event() for _ in range(5)]

        async def stay(number: int) -> None:
            async with desk.client("2024-11-05"):
                ready[number].set()
                await anyio.sleep_forever()

        for number in range(5):
            tasks.start_soon(stay, number)
        for event in ready:
            await event.wait()
        explained = await Explainer(desk.bridge.store, desk.bridge.options).explain(limit=1)
        assert [session.revision for session in explained.sessions] == ["2025-06-18"]
        assert (explained.looked_at, explained.open_questions) == (6, 1)
        tasks.cancel_scope.cancel()
