"""What the suite asks of a server of 2025-11-25, by one that serves 2026-07-28 and nothing else: mcp 2.3.0.

Run it with `python mcp2.py PORT`.
"""

import base64
import sys
from typing import Any

import anyio
import uvicorn
from material import CHOICES, DEFAULTS, PERSON, PNG, WAV
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.prompts.base import UserMessage
from mcp_types import (
    AudioContent,
    CallToolResult,
    Completion,
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    EmbeddedResource,
    ImageContent,
    InputRequest,
    InputRequiredResult,
    SamplingMessage,
    TextContent,
    TextResourceContents,
)
from starlette.types import ASGIApp, Receive, Scope, Send

server = MCPServer("everything", log_level="WARNING")


Asking = CallToolResult | InputRequiredResult


def text(said: str) -> TextContent:
    return TextContent(type="text", text=said)


def image() -> ImageContent:
    return ImageContent(type="image", data=PNG, mime_type="image/png")


def embedded(uri: str) -> EmbeddedResource:
    contents = TextResourceContents(uri=uri, mime_type="text/plain", text="The text of the resource.")
    return EmbeddedResource(type="resource", resource=contents)


def form(message: str, schema: dict[str, Any]) -> InputRequest:
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def asked(ctx: Context, request: InputRequest) -> Asking:
    """Ask what has no answer yet; show the answer when it has come."""
    given = (ctx.input_responses or {}).get("question")
    if given is None:
        return InputRequiredResult(input_requests={"question": request})
    return CallToolResult(content=[text(f"Answered: {given}")])


@server.tool(structured_output=False)
def test_simple_text() -> str:
    """Return a text."""
    return "This is a simple text response for testing."


@server.tool(structured_output=False)
def test_image_content() -> list[Any]:
    """Return an image."""
    return [image()]


@server.tool(structured_output=False)
def test_audio_content() -> list[Any]:
    """Return a sound."""
    return [AudioContent(type="audio", data=WAV, mime_type="audio/wav")]


@server.tool(structured_output=False)
def test_embedded_resource() -> list[Any]:
    """Return a resource."""
    return [embedded("test://embedded-resource")]


@server.tool(structured_output=False)
def test_multiple_content_types() -> list[Any]:
    """Return a text, an image and a resource."""
    return [text("All of it:"), image(), embedded("test://mixed-content-resource")]


@server.tool()
def test_error_handling() -> str:
    """Fail."""
    raise RuntimeError("This tool intentionally returns an error for testing")


@server.tool()
def json_schema_2020_12_tool(name: str | None = None, phone: str | None = None, email: str | None = None) -> str:
    """Take arguments whose rules no signature can say."""
    return "ok"


server._tool_manager._tools["json_schema_2020_12_tool"].parameters = PERSON


@server.tool()
async def test_tool_with_logging(ctx: Context) -> str:
    """Log three times."""
    for line in ("started", "processing", "completed"):
        await ctx.info(line)
        await anyio.sleep(0.05)
    return "Logged three times."


@server.tool()
async def test_tool_with_progress(ctx: Context) -> str:
    """Report progress three times."""
    for done in (0, 50, 100):
        await ctx.report_progress(done, 100, f"{done} %")
        await anyio.sleep(0.05)
    return "Done."


@server.tool()
async def test_reconnection(ctx: Context) -> str:
    """Take a moment: streams of this revision are not closed and come back to."""
    await anyio.sleep(0.1)
    return "Not reconnected."


@server.tool()
async def test_elicitation(message: str, ctx: Context) -> Asking:
    """Ask the user."""
    schema = {"type": "object", "properties": {"response": {"type": "string"}}, "required": ["response"]}
    return asked(ctx, form(message, schema))


@server.tool()
async def test_sampling(prompt: str, ctx: Context) -> Asking:
    """Let the client's model answer."""
    messages = [SamplingMessage(role="user", content=text(prompt))]
    return asked(ctx, CreateMessageRequest(params=CreateMessageRequestParams(messages=messages, max_tokens=100)))


@server.tool()
async def test_elicitation_sep1034_defaults(ctx: Context) -> Asking:
    """Ask with a default for each kind of field."""
    return asked(ctx, form("Please review", DEFAULTS))


@server.tool()
async def test_elicitation_sep1330_enums(ctx: Context) -> Asking:
    """Ask with each kind of choice."""
    return asked(ctx, form("Please choose", CHOICES))


@server.prompt()
def test_simple_prompt() -> str:
    """A prompt without arguments."""
    return "This is a simple prompt for testing."


@server.prompt()
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A prompt with arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@server.prompt()
def test_prompt_with_embedded_resource(resourceUri: str) -> list[Any]:  # noqa: N803
    """A prompt with a resource in it."""
    return [UserMessage(content=embedded(resourceUri)), UserMessage(content=text("Process it, please."))]


@server.prompt()
def test_prompt_with_image() -> list[Any]:
    """A prompt with an image in it."""
    return [UserMessage(content=image()), UserMessage(content=text("Analyze it, please."))]


@server.completion()
async def complete(ref: Any, argument: Any, context: Any) -> Completion:
    """The values to choose from."""
    return Completion(values=["paris", "park", "party"], total=3, has_more=False)


@server.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    """A text."""
    return "This is the content of the static text resource."


@server.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """An image."""
    return base64.b64decode(PNG)


@server.resource("test://watched-resource", mime_type="text/plain")
def watched_resource() -> str:
    """A text to subscribe to."""
    return "Watched resource content."


@server.resource("test://template/{id}/data", mime_type="application/json")
def template(id: str) -> str:  # noqa: A002
    """Data by id."""
    return f'{{"id": "{id}", "data": "Data for ID: {id}"}}'


def modern_only(app: ASGIApp) -> ASGIApp:
    """Refuse whatever does not say that it is of 2026-07-28: the SDK would serve older clients too."""
    refusal = (
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32022,"message":"Unsupported protocol version",'
        b'"data":{"supported":["2026-07-28"],"requested":"unknown"}}}'
    )

    async def guard(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or (b"mcp-protocol-version", b"2026-07-28") in scope["headers"]:
            await app(scope, receive, send)
            return
        head = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(refusal))]
        await send({"type": "http.response.start", "status": 400, "headers": head})
        await send({"type": "http.response.body", "body": refusal})

    return guard


if __name__ == "__main__":
    uvicorn.run(modern_only(server.streamable_http_app()), host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
