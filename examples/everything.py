"""The server that the official conformance suite asks for: everything that a server can do, one small thing each.

Serve it with `python -m bridge serve examples/everything.py:bridge`.
"""

import base64
from typing import Annotated, Any, Final

import anyio
from pydantic import BaseModel, Field

from bridge import Answer, Bridge, Context, ToolError, ToolResult
from bridge.content import audio, embedded, image, text

bridge = Bridge("everything", version="1.0.0", elicitation=True)

PNG: Final = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
WAV: Final = base64.b64decode("UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=")


# Content ---------------------------------------------------------------------------------------------------------


@bridge.tool
def test_simple_text() -> str:
    """Return a text."""
    return "This is a simple text response for testing."


@bridge.tool
def test_image_content() -> ToolResult:
    """Return an image."""
    return ToolResult(content=[image(PNG, "image/png")])


@bridge.tool
def test_audio_content() -> ToolResult:
    """Return a sound. Clients of 2024-11-05, which have none, get a text."""
    return ToolResult(content=[audio(WAV, "audio/wav")])


@bridge.tool
def test_embedded_resource() -> ToolResult:
    """Return a resource."""
    return ToolResult(content=[embedded("test://embedded-resource", "The text of the resource.", "text/plain")])


@bridge.tool
def test_multiple_content_types() -> ToolResult:
    """Return a text, an image and a resource."""
    note = embedded("test://mixed-content-resource", '{"test":"data","value":123}', "application/json")
    return ToolResult(content=[text("A text, an image and a resource:"), image(PNG, "image/png"), note])


@bridge.tool
def test_error_handling() -> str:
    """Fail."""
    raise ToolError("This tool intentionally returns an error for testing")


# Schemas ---------------------------------------------------------------------------------------------------------

PERSON: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


@bridge.tool(input_schema=PERSON)
def json_schema_2020_12_tool(arguments: dict[str, Any]) -> str:
    """Take arguments whose rules no signature can say."""
    return f"Reached by {'phone' if arguments.get('contactMethod') == 'phone' else 'email'}."


@bridge.tool
def test_x_mcp_header(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]) -> str:
    """Take an argument that travels in an HTTP header too, for proxies on the way."""
    return f"Region: {region}"


# What a call says meanwhile --------------------------------------------------------------------------------------


@bridge.tool
async def test_tool_with_logging(ctx: Context) -> str:
    """Log three times."""
    for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.info(line)
        await anyio.sleep(0.05)
    return "Logged three times."


@bridge.tool
async def test_logging_tool(ctx: Context) -> str:
    """Log at every level; a modern client gets what its request asked for, which may be nothing."""
    for level in ("debug", "info", "warning", "error"):
        await ctx.log(level, f"A message of level {level}", "everything")
    return "Logged at four levels."


@bridge.tool
async def test_tool_with_progress(ctx: Context) -> str:
    """Report progress three times."""
    for done in (0, 50, 100):
        await ctx.progress(done, 100, f"{done} %")
        await anyio.sleep(0.05)
    return "Done."


@bridge.tool
async def test_reconnection(ctx: Context) -> str:
    """Close the stream of the call, and finish: the client picks the result up with `Last-Event-ID`."""
    await ctx.close_stream()
    await anyio.sleep(0.1)
    return "Reconnected."


@bridge.tool
async def test_trigger_tool_change() -> str:
    """Say that the list of tools has changed."""
    await bridge.list_changed("tools")
    return "Told."


@bridge.tool
async def test_trigger_prompt_change() -> str:
    """Say that the list of prompts has changed."""
    await bridge.list_changed("prompts")
    return "Told."


# Questions -------------------------------------------------------------------------------------------------------


class Reply(BaseModel):
    """A form of one text."""

    response: str = Field(description="The user's response")


class Name(BaseModel):
    """Another one."""

    name: str = Field(description="What the user is called")


class Color(BaseModel):
    """And a third."""

    color: str = Field(description="What the user likes best")


def said(text: str) -> list[dict[str, Any]]:
    """A conversation of one message."""
    return [{"role": "user", "content": {"type": "text", "text": text}}]


def described(answer: Answer[Any]) -> str:
    """An answer in words."""
    content = answer.content.model_dump_json() if isinstance(answer.content, BaseModel) else answer.content
    return f"action={answer.status}, content={content}"


@bridge.tool
async def test_elicitation(message: str, ctx: Context) -> str:
    """Ask the user."""
    return f"User response: {described(await ctx.elicit(message, Reply))}"


@bridge.tool
async def test_sampling(prompt: str, ctx: Context) -> str:
    """Let the client's model answer."""
    sampled = await ctx.sample(said(prompt), 100)
    return f"LLM response: {sampled['content'].get('text')}"


DEFAULTS: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    },
}
CHOICES: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
        "titledSingle": {
            "type": "string",
            "oneOf": [
                {"const": "value1", "title": "First Option"},
                {"const": "value2", "title": "Second Option"},
                {"const": "value3", "title": "Third Option"},
            ],
        },
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
        "titledMulti": {
            "type": "array",
            "items": {
                "anyOf": [
                    {"const": "value1", "title": "First Choice"},
                    {"const": "value2", "title": "Second Choice"},
                    {"const": "value3", "title": "Third Choice"},
                ]
            },
        },
    },
}


@bridge.tool
async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    """Ask with a default for each kind of field."""
    return f"Elicitation completed: {described(await ctx.elicit('Please review', DEFAULTS))}"


@bridge.tool
async def test_elicitation_sep1330_enums(ctx: Context) -> str:
    """Ask with each kind of choice."""
    return f"Elicitation completed: {described(await ctx.elicit('Please choose', CHOICES))}"


@bridge.tool
async def test_streaming_elicitation(ctx: Context) -> str:
    """Report progress, and ask."""
    await ctx.progress(1, 2, "about to ask")
    answer = await ctx.elicit("What shall be streamed?", Reply)
    await ctx.progress(2, 2, "asked")
    return f"Streamed: {described(answer)}"


@bridge.tool
async def test_missing_capability(ctx: Context) -> str:
    """Need a client that samples."""
    sampled = await ctx.sample(said("Say hello."), 10)
    return f"LLM response: {sampled['content'].get('text')}"


@bridge.tool
async def test_input_required_result_elicitation(ctx: Context) -> str:
    """Ask for a name."""
    answer = await ctx.elicit("What is your name?", Name, key="user_name")
    return f"Hello, {answer.content.name}!" if answer.accepted else "Hello!"


@bridge.tool
async def test_input_required_result_sampling(ctx: Context) -> str:
    """Let the client's model answer a question."""
    sampled = await ctx.sample(said("What is the capital of France?"), 100)
    return f"LLM response: {sampled['content'].get('text')}"


@bridge.tool
async def test_input_required_result_list_roots(ctx: Context) -> str:
    """Ask for the client's roots."""
    return f"Roots: {', '.join(root['uri'] for root in await ctx.list_roots())}"


@bridge.tool
async def test_input_required_result_request_state(ctx: Context) -> str:
    """Ask, with something that must come back as it was."""
    number = await ctx.step("number", lambda: 7)
    await ctx.elicit("Please confirm", bool, key="confirm")
    return "state-ok" if number == 7 else "state-lost"


@bridge.tool
async def test_input_required_result_multiple_inputs(ctx: Context) -> str:
    """Ask the user, the client's model, and for its roots, all in one round."""
    found: dict[str, str] = {}

    async def name() -> None:
        found["name"] = described(await ctx.elicit("What is your name?", Name, key="user_name"))

    async def greeting() -> None:
        found["greeting"] = (await ctx.sample(said("Write a greeting."), 50))["content"].get("text")

    async def roots() -> None:
        found["roots"] = str(len(await ctx.list_roots()))

    async with anyio.create_task_group() as tasks:
        for ask in (name, greeting, roots):
            tasks.start_soon(ask)
    return f"{found['greeting']} {found['name']}, {found['roots']} roots"


@bridge.tool
async def test_input_required_result_multi_round(ctx: Context) -> str:
    """Ask twice, one after the other."""
    name = await ctx.elicit("Step 1: What is your name?", Name, key="step1")
    color = await ctx.elicit("Step 2: What is your favorite color?", Color, key="step2")
    return f"{described(name)}; {described(color)}"


@bridge.tool
async def test_input_required_result_tampered_state(ctx: Context) -> str:
    """Ask; a state that was changed on the way is refused before this runs again."""
    return described(await ctx.elicit("Please confirm", bool, key="confirm"))


@bridge.tool
async def test_input_required_result_capabilities(ctx: Context) -> str:
    """Ask in whatever way the client declares."""
    if ctx.client.declares("form"):
        return described(await ctx.elicit("What is your name?", Name))
    sampled = await ctx.sample(said("What is the capital of France?"), 100)
    return f"LLM response: {sampled['content'].get('text')}"


# Prompts ---------------------------------------------------------------------------------------------------------


@bridge.prompt()
def test_simple_prompt() -> str:
    """A prompt without arguments."""
    return "This is a simple prompt for testing."


@bridge.prompt()
def test_prompt_with_arguments(
    arg1: Annotated[str, Field(description="First test argument")],
    arg2: Annotated[str, Field(description="Second test argument")],
) -> str:
    """A prompt with arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@bridge.completion("test_prompt_with_arguments", "arg1")
def complete_arg1(typed: str, others: dict[str, str]) -> list[str]:
    """The values to choose from."""
    return [value for value in ("paris", "park", "party") if value.startswith(typed)]


@bridge.prompt()
def test_prompt_with_embedded_resource(resourceUri: str) -> list[Any]:  # noqa: N803 - as the suite calls it
    """A prompt with a resource in it."""
    return [embedded(resourceUri, "Embedded resource content for testing.", "text/plain"), "Process it, please."]


@bridge.prompt()
def test_prompt_with_image() -> list[Any]:
    """A prompt with an image in it."""
    return [image(PNG, "image/png"), "Analyze it, please."]


@bridge.prompt()
async def test_input_required_result_prompt(ctx: Context) -> str:
    """A prompt that asks."""
    answer = await ctx.elicit(
        "What context should the prompt use?",
        {"type": "object", "properties": {"context": {"type": "string"}}, "required": ["context"]},
        key="user_context",
    )
    return f"Use this context: {answer.content}"


# Resources -------------------------------------------------------------------------------------------------------


@bridge.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    """A text."""
    return "This is the content of the static text resource."


@bridge.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """An image."""
    return PNG


@bridge.resource("test://watched-resource", mime_type="text/plain")
def watched_resource() -> str:
    """A text to subscribe to."""
    return "Watched resource content."


@bridge.resource("test://template/{id}/data", mime_type="application/json")
def template(id: str) -> dict[str, Any]:  # noqa: A002 - as the variable is called
    """Data by id."""
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


if __name__ == "__main__":
    bridge.run()
