"""Drives the client of mcp 1.30.0. See `plan.py`."""

import warnings
from typing import Any

import mcp.types as types
from mcp import ClientSession, McpError, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client
from plan import Json, OnProgress, Plan, Requests, drive


async def converse(plan: Plan) -> None:
    """Follow a plan over one session."""

    async def ask(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult | types.ErrorData:
        answer = await plan.answer(_wire(params))
        if "error" in answer:
            return types.ErrorData(code=answer["error"], message="planned")
        return types.ElicitResult(action=answer["action"], content=answer.get("content"))

    async def note(message: Any) -> None:
        if isinstance(message, types.ServerNotification):
            plan.notified(message.root.method)
        elif isinstance(message, Exception):
            plan.report["errors"].append(repr(message))

    async with (
        _connected(plan) as (read, write, *_),
        ClientSession(
            read, write, elicitation_callback=ask if plan.can_be_asked else None, message_handler=note
        ) as mcp,
    ):
        initialized = await mcp.initialize()
        plan.report["revision"] = initialized.protocolVersion

        async def list_tools() -> list[Json]:
            return [_wire(tool) for tool in (await mcp.list_tools()).tools]

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


def _connected(plan: Plan) -> Any:
    if plan.child is not None:
        return stdio_client(StdioServerParameters(**plan.child))
    if plan.transport == "sse":
        return sse_client(plan.url)
    if plan.transport == "ws":
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
            from mcp.client.websocket import websocket_client

            return websocket_client(plan.url)
    return streamablehttp_client(plan.url)


def _wire(model: Any) -> Json:
    wire: Json = model.model_dump(mode="json", by_alias=True, exclude_none=True)
    return wire


def _error(error: Exception) -> Json:
    return _wire(error.error) if isinstance(error, McpError) else {"message": repr(error)}


drive(converse)
