"""Drives the client of mcp 2.3.0, in either era. See `plan.py`."""

from typing import Any

from mcp import Client, MCPError, StdioServerParameters
from mcp.client.sse import sse_client
from mcp_types import ElicitResult, ErrorData
from plan import Json, OnProgress, Plan, Requests, drive


async def converse(plan: Plan) -> None:
    """Follow a plan with one client."""

    async def ask(context: Any, params: Any) -> ElicitResult | ErrorData:
        answer = await plan.answer(_wire(params))
        if "error" in answer:
            return ErrorData(code=answer["error"], message="planned")
        return ElicitResult(action=answer["action"], content=answer.get("content"))

    async def note(message: Any) -> None:
        if isinstance(message, Exception):
            plan.report["errors"].append(repr(message))
        else:
            plan.notified(message.method)

    callback = ask if plan.can_be_asked else None
    async with Client(_server(plan), mode=plan.mode, elicitation_callback=callback, message_handler=note) as mcp:
        plan.report["revision"] = mcp.protocol_version

        async def list_tools() -> list[Json]:
            return [_wire(tool) for tool in (await mcp.list_tools(cache_mode="refresh")).tools]

        async def call_tool(name: str, arguments: Json, moved: OnProgress) -> Json:
            async def on_progress(progress: float, total: float | None, message: str | None) -> None:
                assert moved is not None
                moved(progress)

            return _wire(await mcp.call_tool(name, arguments, progress_callback=on_progress if moved else None))

        requests: Requests = {
            "prompts/list": mcp.list_prompts,
            "prompts/get": mcp.get_prompt,
            "resources/list": mcp.list_resources,
            "resources/templates/list": mcp.list_resource_templates,
            "resources/read": mcp.read_resource,
        }

        async def request(method: str, params: Json) -> Json:
            return _wire(await requests[method](**params))

        await plan.run(list_tools, call_tool, request, _error)


def _server(plan: Plan) -> Any:
    if plan.child is not None:
        return StdioServerParameters(**plan.child)
    return sse_client(plan.url) if plan.transport == "sse" else plan.url


def _wire(model: Any) -> Json:
    wire: Json = model.model_dump(mode="json", by_alias=True, exclude_none=True)
    return wire


def _error(error: Exception) -> Json:
    return _wire(error.error) if isinstance(error, MCPError) else {"message": repr(error)}


drive(converse)
