"""What the suite asks of a server, written with FastMCP of mcp 1.30.0, which knows no revision after 2025-11-25.

Run it with `python mcp1.py PORT`.
"""

import base64
import sys
from typing import Annotated, Any

import anyio
import uvicorn
from material import CHOICES, DEFAULTS, PERSON, PNG, WAV
from mcp.server.fastmcp import Context, FastMCP
from mcp.server.fastmcp.prompts import base
from mcp.server.lowlevel import NotificationOptions
from mcp.types import (
    AudioContent,
    ClientCapabilities,
    Completion,
    CreateMessageResult,
    ElicitationCapability,
    EmbeddedResource,
    ImageContent,
    SamplingMessage,
    TextContent,
    TextResourceContents,
)
from pydantic import AnyUrl, BaseModel, Field

server = FastMCP("everything", log_level="WARNING")
lowlevel = server._mcp_server
_initialization = lowlevel.create_initialization_options
lowlevel.create_initialization_options = lambda *_: _initialization(  # type: ignore[method-assign]
    NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
)


class Reply(BaseModel):
    response: str


class Name(BaseModel):
    name: str


class Color(BaseModel):
    color: str


class Confirm(BaseModel):
    ok: bool


def text(said: str) -> TextContent:
    return TextContent(type="text", text=said)


def image() -> ImageContent:
    return ImageContent(type="image", data=PNG, mimeType="image/png")


def embedded(uri: str) -> EmbeddedResource:
    contents = TextResourceContents(uri=AnyUrl(uri), mimeType="text/plain", text="The text of the resource.")
    return EmbeddedResource(type="resource", resource=contents)


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
    return [AudioContent(type="audio", data=WAV, mimeType="audio/wav")]


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
def test_x_mcp_header(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]) -> str:
    """Take an argument that travels in an HTTP header too."""
    return f"Region: {region}"


@server.tool()
async def test_tool_with_logging(ctx: Context) -> str:
    """Log three times."""
    for line in ("started", "processing", "completed"):
        await ctx.info(line)
        await anyio.sleep(0.05)
    return "Logged three times."


@server.tool()
async def test_logging_tool(ctx: Context) -> str:
    """Log at every level."""
    await ctx.debug("fine")
    await ctx.info("so")
    await ctx.warning("well")
    await ctx.error("bad")
    return "Logged at four levels."


@server.tool()
async def test_tool_with_progress(ctx: Context) -> str:
    """Report progress three times."""
    for done in (0, 50, 100):
        await ctx.report_progress(done, 100, f"{done} %")
        await anyio.sleep(0.05)
    return "Done."


@server.tool()
async def test_reconnection(ctx: Context) -> str:
    """Close the stream of the call, and finish."""
    if ctx.request_context.close_sse_stream is not None:
        await ctx.request_context.close_sse_stream()
    await anyio.sleep(0.1)
    return "Reconnected."


@server.tool()
async def test_trigger_tool_change(ctx: Context) -> str:
    """Say that the list of tools has changed."""
    await ctx.session.send_tool_list_changed()
    return "Told."


@server.tool()
async def test_trigger_prompt_change(ctx: Context) -> str:
    """Say that the list of prompts has changed."""
    await ctx.session.send_prompt_list_changed()
    return "Told."


async def sampled(ctx: Context, prompt: str) -> CreateMessageResult:
    """What the client's model says."""
    messages = [SamplingMessage(role="user", content=text(prompt))]
    return await ctx.session.create_message(messages, max_tokens=100, related_request_id=ctx.request_id)


async def asked(ctx: Context, message: str, schema: dict[str, Any]) -> str:
    """Ask with a schema as it stands, which FastMCP's own `elicit` cannot."""
    answer = await ctx.session.elicit_form(message, schema, related_request_id=ctx.request_id)
    return f"Elicitation completed: action={answer.action}, content={answer.content}"


@server.tool()
async def test_elicitation(message: str, ctx: Context) -> str:
    """Ask the user."""
    return f"User response: {await ctx.elicit(message, Reply)}"


@server.tool()
async def test_sampling(prompt: str, ctx: Context) -> str:
    """Let the client's model answer."""
    return f"LLM response: {(await sampled(ctx, prompt)).content}"


@server.tool()
async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    """Ask with a default for each kind of field."""
    return await asked(ctx, "Please review", DEFAULTS)


@server.tool()
async def test_elicitation_sep1330_enums(ctx: Context) -> str:
    """Ask with each kind of choice."""
    return await asked(ctx, "Please choose", CHOICES)


@server.tool()
async def test_missing_capability(ctx: Context) -> str:
    """Need a client that samples."""
    return f"LLM response: {(await sampled(ctx, 'Say hello.')).content}"


@server.tool()
async def test_streaming_elicitation(ctx: Context) -> str:
    """Report progress, and ask."""
    await ctx.report_progress(1, 2, "about to ask")
    answer = await ctx.elicit("What shall be streamed?", Reply)
    await ctx.report_progress(2, 2, "asked")
    return f"Streamed: {answer}"


@server.tool()
async def test_input_required_result_elicitation(ctx: Context) -> str:
    """Ask for a name."""
    return f"Hello: {await ctx.elicit('What is your name?', Name)}"


@server.tool()
async def test_input_required_result_sampling(ctx: Context) -> str:
    """Let the client's model answer a question."""
    return f"LLM response: {(await sampled(ctx, 'What is the capital of France?')).content}"


@server.tool()
async def test_input_required_result_list_roots(ctx: Context) -> str:
    """Ask for the client's roots."""
    return f"Roots: {(await ctx.session.list_roots()).roots}"


@server.tool()
async def test_input_required_result_request_state(ctx: Context) -> str:
    """Ask, with something in a variable meanwhile."""
    number = 7
    await ctx.elicit("Please confirm", Confirm)
    return "state-ok" if number == 7 else "state-lost"


@server.tool()
async def test_input_required_result_multiple_inputs(ctx: Context) -> str:
    """Ask the user, the client's model, and for its roots, all at once."""
    found: list[Any] = []

    async def name() -> None:
        found.append(await ctx.elicit("What is your name?", Name))

    async def greeting() -> None:
        found.append(await sampled(ctx, "Write a greeting."))

    async def roots() -> None:
        found.append(await ctx.session.list_roots())

    async with anyio.create_task_group() as tasks:
        for ask in (roots, name, greeting):  # a request for roots names no call: it comes while the call is active
            tasks.start_soon(ask)
    return str(found)


@server.tool()
async def test_input_required_result_multi_round(ctx: Context) -> str:
    """Ask twice, one after the other."""
    name = await ctx.elicit("Step 1: What is your name?", Name)
    color = await ctx.elicit("Step 2: What is your favorite color?", Color)
    return f"{name}; {color}"


@server.tool()
async def test_input_required_result_tampered_state(ctx: Context) -> str:
    """Ask, for a state that is changed on the way."""
    return str(await ctx.elicit("Please confirm", Confirm))


@server.tool()
async def test_input_required_result_capabilities(ctx: Context) -> str:
    """Ask in whatever way the client declares."""
    if ctx.session.check_client_capability(ClientCapabilities(elicitation=ElicitationCapability())):
        return str(await ctx.elicit("What is your name?", Name))
    return f"LLM response: {(await sampled(ctx, 'What is the capital of France?')).content}"


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
    return [base.UserMessage(content=embedded(resourceUri)), base.UserMessage(content=text("Process it, please."))]


@server.prompt()
def test_prompt_with_image() -> list[Any]:
    """A prompt with an image in it."""
    return [base.UserMessage(content=image()), base.UserMessage(content=text("Analyze it, please."))]


@server.prompt()
async def test_input_required_result_prompt(ctx: Context) -> str:
    """A prompt that asks."""
    answer = await ctx.session.elicit_form(
        "What context?",
        {"type": "object", "properties": {"context": {"type": "string"}}, "required": ["context"]},
        related_request_id=ctx.request_id,
    )
    return f"Use this context: {answer.content}"


@server.completion()
async def complete(ref: Any, argument: Any, context: Any) -> Completion:
    """The values to choose from."""
    return Completion(values=["paris", "park", "party"], total=3, hasMore=False)


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


@lowlevel.subscribe_resource()  # type: ignore[no-untyped-call,untyped-decorator]
async def subscribe(uri: AnyUrl) -> None:
    """Take a subscription."""


@lowlevel.unsubscribe_resource()  # type: ignore[no-untyped-call,untyped-decorator]
async def unsubscribe(uri: AnyUrl) -> None:
    """Take it back."""


@lowlevel.set_logging_level()  # type: ignore[no-untyped-call,untyped-decorator]
async def set_level(level: str) -> None:
    """Take a level; every message is sent all the same."""


if __name__ == "__main__":
    uvicorn.run(server.streamable_http_app(), host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
