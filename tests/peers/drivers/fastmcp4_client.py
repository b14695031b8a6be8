"""Drives the client of FastMCP 4, in either era. See `plan.py`."""

from typing import Any

from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import SSETransport, StdioTransport
from mcp import MCPError
from plan import Json, OnProgress, Plan, Requests, drive


async def converse(plan: Plan) -> None:
    """Follow a plan with one client."""

    async def ask(message: str, response_type: Any, params: Any, context: Any) -> ElicitResult[Any]:
        answer = await plan.answer(_wire(params))
        assert "error" not in answer, "FastMCP has one code for every failure of its handler"
        return ElicitResult(action=answer["action"], content=answer.get("content"))

    async def note(message: Any) -> None:
        if isinstance(message, Exception):
            plan.report["errors"].append(repr(message))
        else:
            plan.notified(message.method)

    handler = ask if plan.can_be_asked else None
    async with Client(_server(plan), mode=plan.mode, elicitation_handler=handler, message_handler=note) as mcp:
        plan.report["revision"] = mcp.session.protocol_version

        async def list_tools() -> list[Json]:
            return [_wire(tool) for tool in await mcp.list_tools()]

        async def call_tool(name: str, arguments: Json, moved: OnProgress) -> Json:
            async def on_progress(progress: float, total: float | None, message: str | None) -> None:
                assert moved is not None
                moved(progress)

            return _wire(await mcp.call_tool_mcp(name, arguments, progress_handler=on_progress if moved else None))

        requests: Requests = {
            "prompts/list": mcp.list_prompts_mcp,
            "prompts/get": mcp.get_prompt_mcp,
            "resources/list": mcp.list_resources_mcp,
            "resources/templates/list": mcp.list_resource_templates_mcp,
            "resources/read": mcp.read_resource_mcp,
        }

        async def request(method: str, params: Json) -> Json:
            return _wire(await requests[method](**params))

        await plan.run(list_tools, call_tool, request, _error)


def _server(plan: Plan) -> Any:
    if plan.child is not None:
        return StdioTransport(**plan.child, keep_alive=False)
    return SSETransport(plan.url) if plan.transport == "sse" else plan.url


def _wire(model: Any) -> Json:
    wire: Json = model.model_dump(mode="json", by_alias=True, exclude_none=True)
    return wire


def _error(error: Exception) -> Json:
    return _wire(error.error) if isinstance(error, MCPError) else {"message": repr(error)}


drive(converse)
