"""A server that somebody else wrote, over stdio, behind the bridge: asked by every kind of client, run once."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from bridge.asking.fallback import FALLBACK_TOOL_NAME
from bridge.protocol.messages import encode
from bridge.testing import Client, RpcError, accept, cancel, connect, decline
from bridge.upstreams import session
from bridge.upstreams.targets import ServerOptions
from bridge.upstreams.wrapped import ToolRules, WrapRules
from tests.conftest import Serve
from tests.upstreams.plain import Plain

behaviour = pytest.mark.behaviour

REVISIONS = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]
FORMS = {"elicitation": {"form": {}, "url": {}}}


def ask(client: Client, **answers: Any) -> None:
    """Answer questions by the first word of their message."""

    def handler(asked: Any) -> Any:
        return answers[asked.message.split()[0]]

    client.on_elicitation(handler)


@pytest.mark.parametrize("revision", REVISIONS)
@behaviour("UPS-3", "UPS-4", "ASK-14")
async def test_a_tool_that_writes_before_it_asks_writes_once_on_every_route(
    plain: Plain, serve: Serve, revision: str
) -> None:
    async with connect(await serve(plain.bridge()), revision=revision) as mcp:
        ask(mcp, Close=accept({"confirm": True}))
        assert (await mcp.tools.call("close", {"what": "T-1"})).text() == "closed T-1"
        ask(mcp, Close=decline())
        assert (await mcp.tools.call("close", {"what": "T-2"})).text() == "kept (decline) T-2"
        ask(mcp, Close=cancel())
        assert (await mcp.tools.call("close", {"what": "T-3"})).text() == "kept (cancel) T-3"
    assert plain.effects == [
        *("began T-1", "closed T-1"),
        *("began T-2", "kept (decline) T-2"),
        *("began T-3", "kept (cancel) T-3"),
    ]


@pytest.mark.parametrize("revision", REVISIONS)
@behaviour("UPS-3")
async def test_questions_that_depend_on_each_other_are_asked_one_after_the_other(
    plain: Plain, serve: Serve, revision: str
) -> None:
    async with connect(await serve(plain.bridge()), revision=revision) as mcp:
        ask(mcp, What=accept({"name": "Ada"}), Are=accept({"confirm": True}))
        assert (await mcp.tools.call("greet")).text() == "Ada is sure"
        assert [asked.message for asked in mcp.asked] == ["What is your name?", "Are you sure, Ada?"]


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25", "2025-03-26"])
@behaviour("UPS-3")
async def test_rerun_makes_the_call_again_with_its_answers(plain: Plain, serve: Serve, revision: str) -> None:
    bridge = plain.bridge(WrapRules(tools={"greet": ToolRules(resume="rerun")}))
    async with connect(await serve(bridge), revision=revision) as mcp:
        ask(mcp, What=accept({"name": "Ada"}), Are=decline())
        assert (await mcp.tools.call("greet")).text() == "Ada is not sure"
        assert len(mcp.asked) == 2


@behaviour("UPS-4")
async def test_a_modern_caller_that_cannot_be_asked_is_refused_and_the_call_is_cancelled(
    plain: Plain, serve: Serve
) -> None:
    async with connect(await serve(plain.bridge()), capabilities={}) as mcp:
        with pytest.raises(RpcError) as refused:
            await mcp.tools.call("close", {"what": "T-1"})
        assert refused.value.code == -32021
        assert refused.value.data == {"requiredCapabilities": {"elicitation": {"form": {}}}}
        await plain.wrote("cancelled")
    assert plain.effects == ["began T-1"]


@behaviour("UPS-4")
async def test_elicitation_is_declared_always_and_sampling_and_roots_as_the_caller_does(
    plain: Plain, serve: Serve
) -> None:
    app = await serve(plain.bridge())
    async with connect(app, capabilities={}) as mcp, connect(app, capabilities={"sampling": {}, **FORMS}) as other:
        await mcp.tools.call("echo")
        await other.tools.call("echo")
    elicitation = '"elicitation": {"form": {}, "url": {}}'
    assert [line for line in plain.lines if line.startswith("initialize")] == [
        f"initialize {{{elicitation}}}",  # the bridge itself, at its start
        f"initialize {{{elicitation}}}",
        f'initialize {{{elicitation}, "sampling": {{}}}}',
    ]


@behaviour("UPS-4")
async def test_declare_caller_reflects_the_caller_exactly(plain: Plain, serve: Serve) -> None:
    app = await serve(plain.bridge(WrapRules(declare="caller")))
    async with connect(app, capabilities={"elicitation": {"form": {}}, "roots": {"listChanged": True}}) as mcp:
        await mcp.tools.call("echo")
    assert 'initialize {"elicitation": {"form": {}}, "roots": {"listChanged": true}}' in plain.lines


@behaviour("UPS-6", "UPS-9")
async def test_a_session_has_a_child_of_its_own_that_ends_with_it(plain: Plain, serve: Serve) -> None:
    app = await serve(plain.bridge())
    started = sum(line.startswith("initialize") for line in plain.lines)
    ended = plain.lines.count("ended")
    async with connect(app, revision="2025-11-25") as one, connect(app, revision="2025-11-25") as other:
        await one.tools.call("echo")
        await other.tools.call("echo")
        assert sum(line.startswith("initialize") for line in plain.lines) == started + 2
        await (await one.raw.delete()).closed()
        await plain.wrote("ended", ended + 1)


@behaviour("UPS-8", "LEG-5")
async def test_results_pass_through_as_they_are(plain: Plain) -> None:
    arguments = {"deep": [{"n": 2**70}], "novel": 1}
    params = {"name": "echo", "arguments": arguments, "_meta": {"example.com/trace": {"id": "t"}}}
    for revision in ("2026-07-28", "2025-11-25"):
        # Without the wire tap, which lets no field pass that the schema does not know.
        async with connect(plain.bridge(), revision=revision) as mcp:
            result = await mcp.request("tools/call", params)
        assert result["structuredContent"] == {
            "arguments": params["arguments"],
            "big": 2**70,
            "float": 1e30,
            "one": 1.0,
        }
        assert result["content"][0] == {"type": "text", "text": "echo", "novel": True}
        assert result["unknownField"] == {"kept": [None, False]}
        assert result["_meta"]["example.com/trace"] == {"id": "t"}


@pytest.mark.parametrize(
    ("code", "modern", "legacy"),
    [(-32602, -32602, -32602), (-32002, -32602, -32002), (-32099, -32603, -32099), (7, 7, 7)],
)
@behaviour("UPS-8")
async def test_errors_keep_their_code_message_and_data_where_the_revision_has_them(
    plain: Plain, serve: Serve, code: int, modern: int, legacy: int
) -> None:
    app = await serve(plain.bridge())
    for revision, expected in (("2026-07-28", modern), ("2025-11-25", legacy)):
        async with connect(app, revision=revision) as mcp:
            with pytest.raises(RpcError) as failed:
                await mcp.tools.call("fail", {"code": code})
        assert (failed.value.code, failed.value.message) == (expected, "no")
        assert failed.value.data == {"why": [1, {"deep": 2**70}]}


@behaviour("UPS-8")
async def test_a_resource_that_is_not_there_has_the_code_of_the_clients_revision(plain: Plain, serve: Serve) -> None:
    app = await serve(plain.bridge())
    for revision, code in (("2026-07-28", -32602), ("2025-11-25", -32002)):
        async with connect(app, revision=revision) as mcp:
            with pytest.raises(RpcError) as failed:
                await mcp.resources.read("note://none")
        assert failed.value.code == code
        assert failed.value.data == {"uri": "note://none"}


@behaviour("UPS-8", "MOD-10", "MOD-11")
async def test_progress_and_logs_reach_the_caller_under_its_own_token(plain: Plain, serve: Serve) -> None:
    app = await serve(plain.bridge())
    level = {"io.modelcontextprotocol/logLevel": "warning"}
    for revision, meta in (("2026-07-28", level), ("2025-11-25", {})):
        async with connect(app, revision=revision) as mcp:
            about = {"_meta": {"progressToken": "mine", **meta}}
            await mcp.request("tools/call", {"name": "count_up", "arguments": {"steps": 3}, **about})
            progress = [note["params"] for note in mcp.notifications if note["method"] == "notifications/progress"]
            logs = [note["params"]["data"] for note in mcp.notifications if note["method"] == "notifications/message"]
        assert [(about["progressToken"], about["progress"]) for about in progress] == [("mine", n) for n in (1, 2, 3)]
        assert logs == ["step 1", "step 2", "step 3"]


@behaviour("CHT-15", "UPS-13")
async def test_what_cannot_be_bridged_is_not_shown(plain: Plain, serve: Serve, caplog: Any) -> None:
    app = await serve(plain.bridge())
    async with connect(app) as mcp, connect(app, revision="2024-11-05") as old:
        discovered = await mcp.request("server/discover", {})
        names = [tool["name"] for tool in await mcp.tools.list()]
        olds = await old.tools.list()
        with pytest.raises(RpcError, match="Unknown tool"):
            await mcp.tools.call("slow_task")
    assert "extensions" not in discovered["capabilities"]
    assert discovered["_meta"]["io.modelcontextprotocol/serverInfo"] == {"name": "plain", "version": "7"}
    assert discovered["instructions"] == "Be plain."
    assert "slow_task" not in names
    assert FALLBACK_TOOL_NAME not in names
    assert [tool["name"] for tool in olds].count(FALLBACK_TOOL_NAME) == 1
    assert "elicitId" in next(tool for tool in olds if tool["name"] == FALLBACK_TOOL_NAME)["inputSchema"]["properties"]
    assert "novel" not in olds[0]
    assert "slow_task of" in caplog.text
    assert "sendElicitationResult of" in caplog.text


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
@behaviour("ASK-16")
async def test_a_relayed_form_that_asks_for_a_secret_is_warned_of(
    plain: Plain, serve: Serve, revision: str, caplog: Any
) -> None:
    async with connect(await serve(plain.bridge()), revision=revision) as mcp:
        ask(mcp, Your=accept({"password": "x"}))
        assert (await mcp.tools.call("sign_in")).text() == "got accept"
    assert "sounds like a secret, in the field 'password'" in caplog.text


@behaviour("ASK-16")
async def test_on_chat_a_relayed_form_that_asks_for_a_secret_is_refused(plain: Plain, serve: Serve) -> None:
    async with connect(await serve(plain.bridge()), revision="2025-03-26") as mcp:
        result = await mcp.tools.call("sign_in")
        assert result.error_code == "ELICITATION_NOT_SUPPORTED"
        assert "'password'" in result.text()
        await plain.wrote("cancelled")
        assert mcp.asked == []


@behaviour("ANS-9")
async def test_a_form_that_the_client_can_take_passes_unchanged(plain: Plain, serve: Serve) -> None:
    async with connect(await serve(plain.bridge()), revision="2025-06-18") as mcp:
        ask(mcp, Close=accept({"confirm": True}))
        await mcp.tools.call("close", {"what": "T-1"})
        assert mcp.asked[0].schema == {
            "type": "object",
            "properties": {"confirm": {"type": "boolean", "title": "Really?"}},
            "required": ["confirm"],
        }


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
@behaviour("UPS-3", "PSH-8")
async def test_a_page_is_relayed_under_a_name_of_our_own(plain: Plain, serve: Serve, revision: str) -> None:
    async with connect(await serve(plain.bridge()), revision=revision, capabilities=FORMS) as mcp:
        ask(mcp, Sign=accept())
        assert (await mcp.tools.call("open_page")).text() == "page: accept"
        assert mcp.asked[0].url == "https://example.com/in"
        if revision == "2025-11-25":
            named = mcp.asked[0].params["elicitationId"]
            assert named != "page-1"
            stream = await mcp.raw.get()
            async for note in stream.messages():
                assert note["method"] == "notifications/elicitation/complete"
                assert note["params"] == {"elicitationId": named}
                break


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25", "2025-03-26"])
@behaviour("UPS-8")
async def test_pages_that_an_error_wants_opened_become_questions(plain: Plain, serve: Serve, revision: str) -> None:
    capabilities = {} if revision == "2025-03-26" else FORMS
    async with connect(await serve(plain.bridge()), revision=revision, capabilities=capabilities) as mcp:
        ask(mcp, Connect=accept())
        assert (await mcp.tools.call("needs_page")).text() == "connected"
        assert mcp.asked[0].url == "https://example.com/c"


@behaviour("ASK-18", "UPS-3")
async def test_sampling_and_roots_of_a_legacy_server_become_input_requests(plain: Plain, serve: Serve) -> None:
    sampled = {"role": "assistant", "content": {"type": "text", "text": "short"}, "model": "m"}
    async with connect(await serve(plain.bridge()), capabilities={"sampling": {}, "roots": {}}) as mcp:
        for tool, method, answer in (
            ("summarize", "sampling/createMessage", sampled),
            ("roots", "roots/list", {"roots": [{"uri": "file:///w"}]}),
        ):
            params = {"name": tool, "arguments": {}}
            first = await mcp.request("tools/call", params)
            [(key, asked)] = first["inputRequests"].items()
            assert asked["method"] == method
            again = {**params, "inputResponses": {key: answer}, "requestState": first["requestState"]}
            last = await mcp.request("tools/call", again)
            assert encode(answer["model" if tool == "summarize" else "roots"]).decode() in last["content"][0][
                "text"
            ].replace(": ", ":")


@behaviour("UPS-5")
async def test_answers_of_two_users_of_one_child_never_cross(plain: Plain, serve: Serve) -> None:
    app = await serve(plain.bridge(server=ServerOptions(shared=True)))
    both, asked = anyio.Event(), []

    def answering(name: str) -> Callable[[Any], Any]:
        async def handler(question: Any) -> Any:
            if question.message.startswith("What"):
                asked.append(name)
                if len(asked) == 2:
                    both.set()
                await both.wait()
                return accept({"name": name})
            return accept({"confirm": True})

        return handler

    texts: dict[str, str] = {}
    async with connect(app, revision="2025-11-25") as one, connect(app, revision="2025-11-25") as other:

        async def call(client: Client, name: str) -> None:
            client.on_elicitation(answering(name))
            texts[name] = (await client.tools.call("greet")).text()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call, one, "Ada")
            tasks.start_soon(call, other, "Bob")
        assert [question.message for question in one.asked] == ["What is your name?", "Are you sure, Ada?"]
        assert [question.message for question in other.asked] == ["What is your name?", "Are you sure, Bob?"]
    assert texts == {"Ada": "Ada is sure", "Bob": "Bob is sure"}
    assert sum(line.startswith("initialize") for line in plain.lines) == 1


@behaviour("UPS-5")
async def test_two_servers_whose_first_question_has_the_same_id_are_told_apart(plain: Plain, serve: Serve) -> None:
    app = await serve(plain.bridge())
    async with connect(app, revision="2025-11-25") as one, connect(app) as other:
        first = await other.request("tools/call", {"name": "close", "arguments": {"what": "B"}})
        ask(one, Close=accept({"confirm": True}))
        assert (await one.tools.call("close", {"what": "A"})).text() == "closed A"
        [key] = first["inputRequests"]
        answers = {"inputResponses": {key: decline()}, "requestState": first["requestState"]}
        last = await other.request("tools/call", {"name": "close", "arguments": {"what": "B"}, **answers})
        assert last["content"][0]["text"] == "kept (decline) B"


@pytest.mark.parametrize("revision", REVISIONS[:3])
@behaviour("UPS-7", "UPS-9")
async def test_a_child_that_dies_in_the_middle_of_a_question_ends_the_call_clearly(
    plain: Plain, serve: Serve, revision: str
) -> None:
    app = await serve(plain.bridge(server=ServerOptions(shared=True)))
    async with connect(app, revision=revision) as mcp, connect(app, revision="2025-11-25") as other:

        async def handler(question: Any) -> Any:
            await other.tools.call("die")
            return accept({"confirm": True})

        mcp.on_elicitation(handler)
        result = await mcp.tools.call("close", {"what": "T-1"})
        assert result.is_error
        assert result.error_code == "INTERRUPTED"
        assert "was not run again" in result.text()
        assert plain.effects == ["began T-1"]
        ask(mcp, Close=accept({"confirm": True}))
        assert (await mcp.tools.call("close", {"what": "T-2"})).text() == "closed T-2"


@behaviour("UPS-11", "MOD-10")
async def test_a_call_that_nobody_answers_in_time_is_cancelled(plain: Plain, serve: Serve) -> None:
    async with connect(await serve(plain.bridge(round_seconds=0.2))) as mcp:
        first = await mcp.request("tools/call", {"name": "close", "arguments": {"what": "T-1"}})
        assert first["resultType"] == "input_required"
        await plain.wrote("cancelled")
    assert plain.effects == ["began T-1"]


@behaviour("UPS-11")
async def test_past_the_limit_of_suspended_calls_a_question_is_refused_with_a_text(plain: Plain, serve: Serve) -> None:
    async with connect(await serve(plain.bridge(WrapRules(max_holds=1)))) as mcp:
        await mcp.request("tools/call", {"name": "close", "arguments": {"what": "T-1"}})
        refused = await mcp.tools.call("close", {"what": "T-2"})
        assert refused.is_error
        assert "too many calls wait" in refused.text()
        await plain.wrote("cancelled")


@behaviour("UPS-11")
async def test_a_round_whose_suspended_call_is_gone_says_so_and_runs_nothing_again(plain: Plain, serve: Serve) -> None:
    bridge = plain.bridge()
    request = {"name": "close", "arguments": {"what": "T-1"}}
    async with connect(await serve(bridge)) as mcp:
        first = await mcp.request("tools/call", request)
    [key] = first["inputRequests"]
    retry = {**request, "inputResponses": {key: accept({"confirm": True})}, "requestState": first["requestState"]}
    async with connect(await serve(bridge)) as mcp:
        last = await mcp.request("tools/call", retry)
        assert last["isError"]
        assert "INTERRUPTED" in last["content"][0]["text"]
    assert plain.effects == ["began T-1"]


@behaviour("UPS-11")
async def test_a_tool_that_only_reads_runs_again_where_its_suspended_call_is_gone(plain: Plain, serve: Serve) -> None:
    bridge = plain.bridge()
    async with connect(await serve(bridge)) as mcp:
        first = await mcp.request("tools/call", {"name": "greet", "arguments": {}})
    [key] = first["inputRequests"]
    retry = {"inputResponses": {key: accept({"name": "Ada"})}, "requestState": first["requestState"]}
    async with connect(await serve(bridge)) as mcp:
        second = await mcp.request("tools/call", {"name": "greet", "arguments": {}, **retry})
        assert second["inputRequests"]["elicitation-2"]["params"]["message"] == "Are you sure, Ada?"


@behaviour("UPS-10")
async def test_the_time_of_a_call_stands_still_while_a_person_is_asked(plain: Plain, serve: Serve) -> None:
    async with connect(await serve(plain.bridge(WrapRules(call_seconds=1.0))), revision="2025-11-25") as mcp:

        async def handler(question: Any) -> Any:
            await anyio.sleep(1.5)
            return accept({"confirm": True})

        mcp.on_elicitation(handler)
        assert (await mcp.tools.call("close", {"what": "T-1"})).text() == "closed T-1"


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25", "2025-03-26"])
@behaviour("UPS-5")
async def test_a_server_that_does_nothing_else_while_it_asks_is_asked_through(
    tmp_path: Path, serve: Serve, revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "PING_SECONDS", 0.2)
    plain = Plain(tmp_path, "--blocking")
    app = await serve(plain.bridge(server=ServerOptions(shared=True)))
    async with connect(app, revision=revision) as mcp, connect(app, revision="2025-11-25") as other:

        async def handler(question: Any) -> Any:
            # Meanwhile it answers nobody, and nobody's answer is taken for the one that it waits for.
            with anyio.move_on_after(0.3) as waited:
                await other.tools.call("close", {"what": "T-2"})
            assert waited.cancelled_caught
            return accept({"confirm": True})

        mcp.on_elicitation(handler)
        assert (await mcp.tools.call("close", {"what": "T-1"})).text() == "closed T-1"
    assert plain.effects[:2] == ["began T-1", "closed T-1"]


@pytest.mark.parametrize("flags", [(), ("--rude",)], ids=["silent", "rude"])
@behaviour("UPS-5", "UPS-8")
async def test_whatever_a_server_says_to_a_cancellation_the_next_call_is_served(
    tmp_path: Path, serve: Serve, flags: tuple[str, ...]
) -> None:
    plain = Plain(tmp_path, *flags)
    async with connect(await serve(plain.bridge(round_seconds=1.0))) as mcp:
        await mcp.request("tools/call", {"name": "close", "arguments": {"what": "T-1"}})
        await plain.wrote("cancelled")
        ask(mcp, What=accept({"name": "Ada"}), Are=accept({"confirm": True}))
        assert (await mcp.tools.call("greet")).text() == "Ada is sure"
