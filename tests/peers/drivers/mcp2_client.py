"""Drives the client of mcp 2.3.0, in either era. See `plan.py`."""

from typing import Any

from mcp import Client, MCPError
from mcp_types import ElicitRequestFormParams, ElicitResult, ErrorData
from plan import Json, Plan, drive


async def converse(plan: Plan) -> None:
    """Follow a plan with one client."""

    async def ask(context: Any, params: Any) -> ElicitResult | ErrorData:
        assert isinstance(params, ElicitRequestFormParams)
        answer = await plan.answer(params.message, _wire(params)["requestedSchema"])
        if "error" in answer:
            return ErrorData(code=answer["error"], message="planned")
        return ElicitResult(action=answer["action"], content=answer.get("content"))

    async def note(message: Any) -> None:
        if isinstance(message, Exception):
            plan.report["errors"].append(repr(message))
        else:
            plan.notified(message.method)

    callback = ask if plan.can_be_asked else None
    async with Client(plan.url, mode=plan.mode, elicitation_callback=callback, message_handler=note) as mcp:
        plan.report["revision"] = mcp.protocol_version

        async def list_tools() -> list[Json]:
            return [_wire(tool) for tool in (await mcp.list_tools(cache_mode="refresh")).tools]

        async def call_tool(name: str, arguments: Json) -> Json:
            return _wire(await mcp.call_tool(name, arguments))

        await plan.run(list_tools, call_tool, _error)


def _wire(model: Any) -> Json:
    wire: Json = model.model_dump(mode="json", by_alias=True, exclude_none=True)
    return wire


def _error(error: Exception) -> Json:
    return _wire(error.error) if isinstance(error, MCPError) else {"message": repr(error)}


drive(converse)
