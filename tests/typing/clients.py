"""Never run: what mypy and pyright infer of the client in `bridge.testing`."""

from collections.abc import Callable
from typing import Any, assert_type

from bridge import Bridge
from bridge.testing import Asked, CallResult, Client, RpcError, accept, cancel, connect, decline

bridge = Bridge("typed", elicitation=True)


async def agree(asked: Asked) -> dict[str, Any]:
    assert_type(asked.message, str)
    assert_type(asked.schema, dict[str, Any])
    assert_type(asked.url, str | None)
    return accept({"confirm": True})


async def tests() -> None:
    async with connect(bridge, revision="2025-06-18", capabilities={"elicitation": {}}) as mcp:
        assert_type(mcp, Client)
        mcp.on_elicitation(agree)
        mcp.on_elicitation(lambda asked: accept({"x": asked.message}))
        mcp.on_elicitation(lambda asked: decline() if asked.url else cancel())
        result = await mcp.tools.call("close", {"id": "T-1"})
        assert_type(result, CallResult)
        assert_type(result.is_error, bool)
        assert_type(result.error_code, str | None)
        assert_type(result.text(), str)
        assert_type(await mcp.tools.list(), list[dict[str, Any]])
        assert_type(await mcp.prompts.get("greet", {"who": "x"}), dict[str, Any])
        assert_type(await mcp.resources.read("notes://x"), dict[str, Any])
        assert_type(await mcp.request("ping", {}), dict[str, Any])
        assert_type(mcp.asked, list[Asked])
        assert_type(mcp.session_id, str | None)


async def any_asgi_app(app: Callable[..., Any]) -> None:
    async with connect(app) as mcp:
        try:
            await mcp.tools.call("x")
        except RpcError as error:
            assert_type(error.code, int)
            assert_type(error.message, str)
