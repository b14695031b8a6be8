"""The pytest plugin, as its users meet it: projects of their own, run by pytest itself."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "testing"
CONFTEST = """
import pytest
from bridge import Bridge, Context

@pytest.fixture
def written():
    return []

@pytest.fixture
def bridge(written):
    bridge = Bridge("tested", elicitation=True)

    @bridge.tool
    async def ask(ctx: Context) -> str:
        return f"{(await ctx.elicit('Sure?', bool, key='sure')).content}"

    @bridge.tool
    async def write_first(ctx: Context) -> str:
        written.append("a row")
        await ctx.elicit("Keep it?", bool)
        return "written"

    @bridge.tool
    async def ask_first(ctx: Context) -> str:
        await ctx.elicit("Write twice?", bool)
        written.append("a row")
        written.append("a row")
        return "written"

    @bridge.tool
    async def step_first(ctx: Context) -> str:
        await ctx.step("write", lambda: written.append("a row"))
        await ctx.elicit("Keep it?", bool)
        return "written"

    @bridge.tool
    async def loop(ctx: Context) -> str:
        for name in ("a", "b"):
            await ctx.elicit(f"Delete {name}?", bool)
            written.append(f"deleted {name}")
        return "deleted"

    @bridge.tool
    async def once_only(ctx: Context) -> str:
        if written:
            return "It is there."
        await ctx.elicit("Write?", bool)
        written.append("a row")
        return "written"

    @bridge.tool
    async def silent(ctx: Context) -> str:
        return "done"

    return bridge
"""


def run(pytester: pytest.Pytester, test: str, *args: str, conftest: str = CONFTEST) -> pytest.RunResult:
    pytester.makeini("[pytest]\nfilterwarnings = error\n")
    pytester.makeconftest(conftest)
    pytester.makepyfile(test)
    return pytester.runpytest_inprocess("-p", "bridge.testing.plugin", "-p", "no:cacheprovider", *args)


def test_the_plugin_imports_nothing_of_the_package_until_it_is_used() -> None:
    code = (
        "import sys, bridge.testing.plugin\n"
        "print([n for n in sys.modules if n.split('.')[0] in ('pydantic', 'msgspec', 'cryptography', 'anyio')"
        " or n.startswith('bridge.') and not n.startswith('bridge.testing')])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_a_project_that_does_not_use_it_is_left_alone(pytester: pytest.Pytester) -> None:
    test = """
    import pytest
    @pytest.fixture
    def mcp(): return "mine"
    def test_mine(mcp): assert mcp == "mine"
    def test_plain(): pass
    """
    run(pytester, test, "--strict-markers", conftest="").assert_outcomes(passed=2)


def test_each_client_kind_runs_the_test_once(pytester: pytest.Pytester) -> None:
    test = """
    async def test_asks(mcp_each_client):
        mcp_each_client.answers([True] if mcp_each_client.can_be_asked else [])
        try:
            assert (await mcp_each_client.tools.call("ask")).text() == "True"
        except Exception as error:
            assert error.code == -32021
            assert mcp_each_client.kind.name == "modern"
    """
    result = run(pytester, test, "-v")
    result.assert_outcomes(passed=7)
    names = ["modern-forms", "modern", "2025-11-25-forms-urls", "2025-06-18-forms", "2025-06-18-chat"]
    names += ["2025-03-26", "2024-11-05"]
    result.stdout.fnmatch_lines([f"*::test_asks[[]{name}] PASSED*" for name in names])


def test_a_mark_chooses_the_kinds(pytester: pytest.Pytester) -> None:
    test = """
    import pytest
    @pytest.mark.mcp_clients("2025-03-26", "2024-11-05")
    async def test_two(mcp_each_client): assert mcp_each_client.revision.name < "2025-04"
    @pytest.mark.mcp_clients("2024-11-05")
    async def test_one(mcp): assert mcp.revision.name == "2024-11-05"
    @pytest.mark.mcp_clients(asked=True)
    async def test_asked(mcp_each_client): assert mcp_each_client.can_be_asked
    @pytest.mark.mcp_clients("2024-11-05", "modern")
    async def test_not_one(mcp): pass
    """
    result = run(pytester, test)
    result.assert_outcomes(passed=9, errors=1)
    result.stdout.fnmatch_lines(["*mcp is one client, and mcp_clients names 2024-11-05, modern: take mcp_each_client*"])


def test_an_unknown_kind_is_named(pytester: pytest.Pytester) -> None:
    test = """
    import pytest
    @pytest.mark.mcp_clients("2023-01-01")
    async def test_none(mcp_each_client): pass
    """
    result = run(pytester, test)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*no client kind is called '2023-01-01'; there are modern-forms, modern, *"])


def test_without_a_server_it_says_what_to_define(pytester: pytest.Pytester) -> None:
    result = run(pytester, "async def test_it(mcp): pass", conftest="")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*need a fixture `bridge`: define one in conftest.py*"])


def test_a_sync_test_is_told_to_be_async(pytester: pytest.Pytester) -> None:
    result = run(pytester, "def test_it(mcp): pass")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*test_it uses a client, so it must be an async function*"])


def test_anyios_own_plugin_may_run_the_test(pytester: pytest.Pytester) -> None:
    test = """
    import pytest
    pytestmark = pytest.mark.anyio
    @pytest.fixture
    def anyio_backend(): return "asyncio"
    @pytest.fixture
    async def late(): yield 1
    async def test_it(late, mcp): assert late == 1 and await mcp.tools.list()
    class TestMethods:
        async def test_it(self, mcp): assert await mcp.tools.list()
    """
    run(pytester, test).assert_outcomes(passed=2)


def test_what_wrap_takes_is_wrapped(pytester: pytest.Pytester) -> None:
    conftest = """
    import pytest
    from mcp.server.mcpserver import Context, MCPServer
    from pydantic import BaseModel

    class Sure(BaseModel):
        sure: bool

    written = []
    @pytest.fixture
    def bridge():
        server = MCPServer("sdk")
        @server.tool()
        async def write_first(ctx: Context) -> str:
            written.append("a row")
            answer = await ctx.elicit("Keep it?", Sure)
            return f"{answer.action}, {answer.data.sure}"
        return server
    """
    test = """
    import conftest
    async def test_a_held_call_writes_once(mcp):
        mcp.answers([True])
        assert (await mcp.tools.call("write_first")).text() == "accept, True"
        await mcp.assert_effects_once("write_first", answers=[True], effects=conftest.written)
        mcp.save_history("h.json")
        assert (await mcp.replay("h.json")).text() == "accept, True"
    """
    run(pytester, test, conftest=conftest).assert_outcomes(passed=1)


def test_a_question_without_an_answer_and_an_answer_without_a_question_fail(pytester: pytest.Pytester) -> None:
    test = """
    async def test_no_answer(mcp):
        mcp.answers([])
        await mcp.tools.call("ask")
    async def test_no_named_answer(mcp):
        mcp.answers({"other": True})
        await mcp.tools.call("ask")
    async def test_no_question(mcp):
        mcp.answers([True, False])
        await mcp.tools.call("ask")
    async def test_no_named_question(mcp):
        mcp.answers({"sure": True, "Really?": False})
        await mcp.tools.call("ask")
    async def test_all_used(mcp):
        mcp.answers({"sure": True})
        await mcp.tools.call("ask")
        mcp.answers({"Sure?": {"confirm": False}})
        assert (await mcp.tools.call("ask")).text() == "False"
        mcp.answers([lambda asked: "Sure" in asked.message])
        assert (await mcp.tools.call("ask")).text() == "True"
    """
    result = run(pytester, test)
    result.assert_outcomes(passed=1, failed=4)
    result.stdout.fnmatch_lines(
        [
            "*no answer is left for question 1, 'Sure?': add one to the list",
            "*no answer is written down for 'Sure?' (its key is 'sure'); there is one for 'other'",
            "*answers that no question asked for: False",
            "*answers that no question asked for: 'Really?': False",
        ]
    )
    assert "ExceptionGroup" not in result.stdout.str()


@pytest.mark.parametrize("tool", ["ask_first", "step_first"])
def test_effects_once_lets_a_tool_pass_that_asks_before_it_acts(pytester: pytest.Pytester, tool: str) -> None:
    test = f"""
    async def test_it(mcp, written):
        await mcp.assert_effects_once("{tool}", answers=[True], effects=written)
    """
    run(pytester, test).assert_outcomes(passed=1)


def test_effects_once_catches_a_write_before_a_question(pytester: pytest.Pytester) -> None:
    test = """
    async def test_it(mcp, written):
        await mcp.assert_effects_once("write_first", answers=[True], effects=lambda: len(written))
    async def test_named(mcp, written):
        await mcp.assert_effects_once("write_first", answers=[True], effects=written)
    async def test_loop(mcp, written):
        await mcp.assert_effects_once("loop", answers=[True, True], effects=written)
    """
    result = run(pytester, test)
    result.assert_outcomes(failed=3)
    result.stdout.fnmatch_lines(
        [
            "*write_first did more than once what it is to do once, as modern with forms:",
            "*a row: 2 times, and 1 in one go",
            "*run 1: a row, asked 'Keep it?'",
            "*run 2: a row, ended",
            "*Likewise as 2025-11-25 with forms and URLs, 2025-06-18 with forms, 2025-06-18, chat only, 2025-03-26, "
            "2024-11-05.",
            "*loop did more than once*",
            "*deleted a: 2 times, and 1 in one go",
        ]
    )


def test_effects_once_says_when_it_can_say_nothing(pytester: pytest.Pytester) -> None:
    test = """
    async def test_asks_nothing(mcp):
        await mcp.assert_effects_once("silent", effects=[])
    async def test_sees_nothing(mcp):
        await mcp.assert_effects_once("ask", answers=[True])
    async def test_is_not_put_back(mcp, written):
        await mcp.assert_effects_once("once_only", answers=[True], effects=written)
    async def test_is_put_back(mcp, written):
        log = []
        written_append = mcp.effects.watch(written.append)
        def put_back():
            log.extend(written)
            written.clear()
        await mcp.assert_effects_once("once_only", answers=[True], effects=lambda: log + written, before=put_back)
    """
    result = run(pytester, test)
    result.assert_outcomes(passed=1, failed=3)
    result.stdout.fnmatch_lines(
        [
            "*silent asked nothing, as no kind of client, so it never ran twice",
            "*ask did nothing that was seen: watch what it calls*",
            "*once_only asks otherwise when it is called a second time with the same arguments: pass before=*",
        ]
    )


def test_a_watched_function_is_put_back_after_the_test(pytester: pytest.Pytester) -> None:
    test = """
    import types
    module = types.SimpleNamespace(send=lambda to: "sent")
    original = module.send
    async def test_it(mcp):
        mcp.effects.watch(module, "send", returns=None)
        assert module.send(to="x") is None
        assert mcp.effects.seen == ["send(to='x')"]
    def test_put_back():
        assert module.send is original
    """
    run(pytester, test).assert_outcomes(passed=2)


def test_the_wire_is_written_compared_and_its_difference_shown(pytester: pytest.Pytester) -> None:
    test = """
    import pytest
    @pytest.mark.mcp_clients("2025-06-18-chat")
    async def test_it(mcp):
        mcp.answers([True])
        await mcp.tools.call("ask")
        mcp.assert_wire("ask.txt")
    """
    missing = run(pytester, test)
    missing.assert_outcomes(failed=1)
    missing.stdout.fnmatch_lines(["*no wire is saved in *ask.txt: run pytest with --mcp-update to write it*"])
    missing.stdout.fnmatch_lines(["*MCP wire, 2025-06-18, chat only*", "=== POST initialize"])
    pytester.runpytest_inprocess("-p", "bridge.testing.plugin", "--mcp-update").assert_outcomes(passed=1)
    saved = pytester.path / "ask.txt"
    assert "<elicit-id 1>" in saved.read_text()
    assert "The question is open until <time>." in saved.read_text()
    pytester.runpytest_inprocess("-p", "bridge.testing.plugin").assert_outcomes(passed=1)
    changed = run(pytester, test, conftest=CONFTEST.replace("Sure?", "Really?"))
    changed.assert_outcomes(failed=1)
    changed.stdout.fnmatch_lines(["*the wire differs from *", "*-*Sure?*", "*+*Really?*"])


@pytest.mark.parametrize(
    ("before", "after", "difference"),
    [
        ("Sure?", "Really sure?", '*+*"message": "Really sure?"*'),
        ("'Sure?', bool, key", "'Sure?', int, key", '*-*"type": "boolean"*'),
        (
            'return f"{(await ctx',
            "await ctx.step('new', lambda: 1/0)\n        return f\"{(await ctx",
            "*step 'new' is new*",
        ),
        ("return f\"{(await ctx.elicit('Sure?', bool, key='sure')).content}\"", "return ''", "*not asked any more*"),
        ('return f"{(await ctx', "await ctx.elicit('First?', bool)\n        return f\"{(await ctx", "*is another one*"),
        (".content}", ".gone}", "*it fails: Internal error in the tool ask*"),
    ],
)
def test_a_saved_history_shows_what_a_new_version_changed(
    pytester: pytest.Pytester, before: str, after: str, difference: str
) -> None:
    test = """
    async def test_it(mcp):
        mcp.answers([True])
        await mcp.tools.call("ask")
        mcp.save_history("ask.json")
        await mcp.replay("ask.json")
    """
    run(pytester, test).assert_outcomes(passed=1)
    replayed = 'async def test_it(mcp):\n    await mcp.replay("ask.json")\n'
    assert before in CONFTEST
    result = run(pytester, replayed, conftest=CONFTEST.replace(before, after))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*HistoryChanged: ask does not run as its history says*"])
    result.stdout.fnmatch_lines([difference])


def test_a_saved_history_stays_until_it_is_updated(pytester: pytest.Pytester) -> None:
    test = """
    async def test_it(mcp):
        mcp.answers([{answer}])
        await mcp.tools.call("ask")
        mcp.save_history("ask.json")
    """
    saved = pytester.path / "ask.json"
    run(pytester, test.replace("{answer}", "True")).assert_outcomes(passed=1)
    assert '"confirm": true' in saved.read_text()
    run(pytester, test.replace("{answer}", "False")).assert_outcomes(passed=1)
    assert '"confirm": true' in saved.read_text()
    run(pytester, test.replace("{answer}", "False"), "--mcp-update").assert_outcomes(passed=1)
    assert '"confirm": false' in saved.read_text()


def test_a_recorded_step_is_not_taken_again(pytester: pytest.Pytester) -> None:
    test = """
    async def test_it(mcp, written):
        mcp.answers([True])
        await mcp.tools.call("step_first")
        mcp.save_history("step.json")
        assert len(written) == 1
        assert (await mcp.replay("step.json")).text() == "written"
        assert len(written) == 1
    """
    run(pytester, test).assert_outcomes(passed=1)


def test_the_example_project_passes_and_shows_what_it_is_for(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    shutil.copytree(EXAMPLE, pytester.path, dirs_exist_ok=True)
    args = ("-p", "bridge.testing.plugin", "-p", "no:cacheprovider")
    pytester.runpytest_subprocess(*args).assert_outcomes(passed=17)
    shop = pytester.path / "shop.py"
    shop.write_text(
        shop.read_text().replace(
            'await ctx.step("reserve", lambda: self._till.reserve(amount))', "self._till.reserve(amount)"
        )
    )
    result = pytester.runpytest_subprocess(*args)
    result.assert_outcomes(passed=15, failed=2)
    result.stdout.fnmatch_lines(["*reserve(5*): 2 times, and 1 in one go*", "*step 'reserve' is not taken any more*"])
