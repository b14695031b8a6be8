"""The examples run as they are written, for a client of each kind, and the README's code does."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bridge import Bridge
from bridge.testing import Asked, accept, cancel, connect, decline
from tests.conftest import Serve

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted({*(ROOT / "examples").glob("*.py")} - {ROOT / "examples" / "custom_gateway.py"})
CLIENTS: list[dict[str, Any]] = [{}, {"revision": "2025-06-18"}, {"revision": "2024-11-05"}]


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"examples_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_exposes_its_bridge(path: Path) -> None:
    assert isinstance(load(path).bridge, Bridge)


@pytest.mark.parametrize("client", CLIENTS, ids=str)
async def test_confirm_acts_only_on_a_yes(serve: Serve, client: dict[str, Any]) -> None:
    example = load(ROOT / "examples" / "confirm.py")
    async with connect(await serve(example.bridge), **client) as mcp:
        assert (await mcp.tools.call("close_ticket", {"ticket": "T-1"})).json()["closed"] is False
        mcp.on_elicitation(lambda asked: accept({"confirm": True}))
        assert (await mcp.tools.call("close_ticket", {"ticket": "T-1"})).json() == {"closed": True}
    assert example.closed == ["T-1"]


@pytest.mark.parametrize("client", CLIENTS, ids=str)
async def test_step_charges_once(serve: Serve, client: dict[str, Any]) -> None:
    example = load(ROOT / "examples" / "step.py")
    async with connect(await serve(example.bridge), **client) as mcp:
        mcp.on_elicitation(lambda asked: decline())
        assert (await mcp.tools.call("buy", {"amount": 5})).text() == "Not bought."
    assert example.charges == [5]
    assert example.cancelled == [1]


@pytest.mark.parametrize("client", CLIENTS, ids=str)
@pytest.mark.behaviour("UPS-1")
async def test_a_server_of_the_sdk_acts_once_and_only_on_a_yes(serve: Serve, client: dict[str, Any]) -> None:
    example = load(ROOT / "examples" / "wrap_sdk_server.py")
    async with connect(await serve(example.bridge), **client) as mcp:
        assert (await mcp.tools.call("close_ticket", {"ticket": "T-1"})).text() == "T-1 stays open."
        mcp.on_elicitation(lambda asked: accept({"confirm": True}))
        assert (await mcp.tools.call("close_ticket", {"ticket": "T-2"})).text() == "T-2 is closed."
    assert example.log == ["looked at T-1", "looked at T-2", "closed T-2"]


async def test_the_mixed_fleet_is_asked_each_in_its_own_way() -> None:
    example, said = load(ROOT / "examples" / "mixed_fleet.py"), list[str]()
    await example.main(said.append)
    assert [line for line in said if "gets" in line] == [
        "  and gets: T-1 is closed (form).",
        "  and gets: T-1 is closed (form).",
        "  and gets: T-1 is closed (chat).",
    ]
    assert [line for line in said if "sees" in line and "sendElicitationResult" in line] == [
        "a client of 2025-03-26 that can only chat sees close_ticket, sendElicitationResult"
    ]
    assert example.closed == ["T-1"] * 3


ROUTES: dict[str, dict[str, Any]] = {
    "modern": {"capabilities": {"elicitation": {"form": {}, "url": {}}}},
    "push-2025-11-25": {"revision": "2025-11-25", "capabilities": {"elicitation": {"form": {}, "url": {}}}},
    "push-2025-06-18": {"revision": "2025-06-18"},
    "chat-2025-03-26": {"revision": "2025-03-26"},
    "chat-2024-11-05": {"revision": "2024-11-05"},
}
SAID = {
    "Who is coming?": {"name": "Ada", "note": "late"},
    "How many are you?": {"seats": 4},
    "Where from?": {"city": "Bern"},
    "How do we reach you?": {"email": "ada@example.org"},
    "Sure?": {"confirm": True},
    "What name?": {"value": "Ada"},
    "How many?": {"value": 3},
    "How much?": {"value": 9.5},
    "What size?": {"value": "L"},
    "Which day?": {"value": "Sunday"},
    "Which colour?": {"colour": "blue"},
    "Keep booking 1?": {"confirm": True},
}
GOT = {
    "classes": (
        "Guest(name='Ada', nights=1, note='late'), Table(seats=4), Trip(city='Bern', by_train=True), "
        "{'email': 'ada@example.org'}"
    ),
    "scalars": "True, 'Ada', 3, 9.5",
    "choices": "<Size.LARGE: 'L'>, 'Sunday', ['cheese', 'olives'], {'colour': 'blue'}",
    "several": "Sunday, Table(seats=4), True",
    "page": "Look whether it is paid.",
    "attempt": "Ada",
    "plain": "Trip(city='Bern', by_train=True)",
    "once": "1, True",
    "answers": "accept, True, True",
}


def fill_in(asked: Asked) -> Any:
    """What the user says to each question of the tour."""
    if asked.url is not None:
        return accept()
    if asked.message == "What on it?":
        if "value" in asked.schema["properties"]:
            return accept({"value": ["cheese", "olives"]})
        # A revision whose forms have no choice of several is shown one box for each.
        return accept({"value: cheese": True, "value: ham": False, "value: olives": True})
    return accept(SAID[asked.message])


@pytest.fixture(params=ROUTES)
def route(request: pytest.FixtureRequest) -> dict[str, Any]:
    """A client for each way to be asked, as arguments of `connect`."""
    return ROUTES[request.param]


@pytest.mark.behaviour("ASK-1", "ASK-2", "ASK-6", "ASK-7", "ASK-9", "ASK-10", "ASK-13", "ANS-8", "CHT-13")
@pytest.mark.parametrize("tool", GOT)
async def test_every_question_of_the_tour_gets_its_answer(serve: Serve, route: dict[str, Any], tool: str) -> None:
    example = load(ROOT / "examples" / "asking.py")
    async with connect(await serve(example.bridge), **route) as mcp:
        mcp.on_elicitation(fill_in)
        result = await mcp.tools.call(tool)
        assert not result.is_error
        assert result.text() == GOT[tool]
    assert len(example.booked) == (1 if tool == "once" else 0)


@pytest.mark.behaviour("ANS-3")
@pytest.mark.parametrize("name", ["modern", "push-2025-11-25", "push-2025-06-18"])
async def test_the_tour_asks_again_with_the_reasons(serve: Serve, name: str) -> None:
    example = load(ROOT / "examples" / "asking.py")
    async with connect(await serve(example.bridge), **ROUTES[name]) as mcp:
        mcp.on_elicitation(lambda asked: accept({"number": 3 if len(mcp.asked) == 1 else 4}))
        assert (await mcp.tools.call("again")).text() == "Even(number=4)"
        first, second = mcp.asked
        assert first.message == "An even number?"
        assert second.message.startswith("An even number?")
        assert "multiple of 2" in second.message


@pytest.mark.behaviour("ANS-4")
@pytest.mark.parametrize("name", ["chat-2025-03-26", "chat-2024-11-05"])
async def test_on_chat_the_model_is_told_and_the_question_stays_open(serve: Serve, name: str) -> None:
    example = load(ROOT / "examples" / "asking.py")
    async with connect(await serve(example.bridge), **ROUTES[name]) as mcp:
        mcp.on_elicitation(lambda asked: accept({"number": 3}))
        refused = await mcp.tools.call("again")
        assert refused.error_code == "INVALID_INPUT"
        assert "multiple of 2" in refused.text()
        given = {"elicitId": mcp.asked[0].params["elicitId"], **accept({"number": 4})}
        assert (await mcp.tools.call("sendElicitationResult", given)).text() == "Even(number=4)"


@pytest.mark.behaviour("ASK-17")
async def test_the_tour_tells_a_no_from_a_closed_question(serve: Serve, route: dict[str, Any]) -> None:
    example = load(ROOT / "examples" / "asking.py")
    said = [decline(), cancel(), accept({"confirm": False})]
    async with connect(await serve(example.bridge), **route) as mcp:
        mcp.on_elicitation(lambda asked: said.pop(0))
        assert (await mcp.tools.call("answers")).text() == "decline, False, None"
        assert (await mcp.tools.call("answers")).text() == "cancel, False, None"
        assert (await mcp.tools.call("answers")).text() == "accept, True, False"
        mcp.on_elicitation(lambda asked: decline())
        assert (await mcp.tools.call("attempt")).text() == "decline"
        if route is not ROUTES["push-2025-06-18"]:
            assert (await mcp.tools.call("page")).text() == "Not paid (decline)."


NOT_PLAIN = ("test_error_handling", "test_x_mcp_header", "test_reconnection")
"""Tools of the suite's server that fail, or want more of a client than this one does: headers, and coming back."""


def say(asked: Asked) -> Any:
    """Something for each field of a form."""
    values: dict[str, Any] = {"string": "option1", "boolean": True}
    fields = {name: field for name, field in asked.schema["properties"].items() if name in asked.schema["required"]}
    return accept({name: values[field["type"]] for name, field in fields.items()})


@pytest.mark.behaviour("ASK-8", "ASK-18", "ASK-19", "LEG-7", "LEG-10", "MOD-11")
@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])
async def test_the_server_of_the_conformance_suite_does_everything(serve: Serve, revision: str) -> None:
    example = load(ROOT / "examples" / "everything.py")
    capabilities = {"elicitation": {}, "sampling": {}, "roots": {}}
    async with connect(await serve(example.bridge), revision=revision, capabilities=capabilities) as mcp:
        mcp.on_elicitation(lambda asked: say(asked) if asked.schema.get("required") else accept({}))
        sampled = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "hello"}}
        mcp.on_request("sampling/createMessage", lambda params: sampled)
        mcp.on_request("roots/list", lambda params: {"roots": [{"uri": "file:///here"}]})
        for tool in await mcp.tools.list():
            if tool["name"] in NOT_PLAIN or not tool["name"].startswith("test_"):
                continue
            result = await mcp.tools.call(tool["name"], dict.fromkeys(tool["inputSchema"]["properties"], "x"))
            assert not result.is_error, (tool["name"], result.text())
        assert (await mcp.tools.call("test_error_handling")).is_error
        assert "email" in (await mcp.tools.call("json_schema_2020_12_tool", {"email": "a@example.org"})).text()
        assert (await mcp.tools.call("json_schema_2020_12_tool", {"name": "Ada"})).is_error
        for resource in await mcp.resources.list():
            assert (await mcp.resources.read(resource["uri"]))["contents"]
        for prompt in await mcp.prompts.list():
            if prompt["name"] != "test_input_required_result_prompt" or revision > "2025-06":
                given = {argument["name"]: "test://x" for argument in prompt["arguments"]}
                assert (await mcp.prompts.get(prompt["name"], given))["messages"]
