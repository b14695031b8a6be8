"""Spans: one a request, in the trace of who called; one a call of a wrapped server, which carries it on."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import baggage, trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from bridge import Bridge, Context, ToolError
from bridge.testing import accept, connect
from tests.conftest import Serve
from tests.upstreams.plain import Plain
from tests.upstreams.test_wrapped_modern import tools
from tests.upstreams.web import http_server

TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = f"00-{TRACE}-{CALLER}-01"
META = {"traceparent": PARENT, "tracestate": "vendor=1", "baggage": "user=ada"}


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """What was exported since the app started; a provider can be set once a process, so it is put there by hand."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    yield exporter
    provider.shutdown()


def make() -> Bridge:
    bridge = Bridge("traced", elicitation=True)

    @bridge.tool
    async def add(a: int, b: int) -> dict[str, Any]:
        with trace.get_tracer("author").start_as_current_span("inner"):
            return {"sum": a + b, "user": baggage.get_baggage("user")}

    @bridge.tool
    async def ask(ctx: Context) -> bool:
        return (await ctx.elicit("Really?", bool)).accepted

    @bridge.tool
    async def fail() -> str:
        raise ToolError("no", "NOT_FOUND")

    return bridge


def named(spans: InMemorySpanExporter, name: str, kind: SpanKind | None = None) -> list[ReadableSpan]:
    return [span for span in spans.get_finished_spans() if span.name == name and kind in (None, span.kind)]


def hexes(span: ReadableSpan) -> tuple[str, str | None]:
    """The trace of a span, and its parent."""
    context = span.get_span_context()
    assert context is not None
    return f"{context.trace_id:032x}", None if span.parent is None else f"{span.parent.span_id:016x}"


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25", "2025-03-26"])
async def test_a_request_joins_the_trace_that_its_message_names(
    spans: InMemorySpanExporter, serve: Serve, revision: str
) -> None:
    async with connect(await serve(make()), revision=revision) as mcp:
        params: dict[str, Any] = {"name": "add", "arguments": {"a": 1, "b": 2}, "_meta": dict(META)}
        reply = await mcp.raw.request({"method": "tools/call", "params": params})
    assert "ada" in reply["result"]["content"][0]["text"], "its baggage is there too"
    (span,) = named(spans, "tools/call add")
    assert span.kind is SpanKind.SERVER
    assert hexes(span) == (TRACE, CALLER)
    context = span.get_span_context()
    assert context is not None
    assert context.trace_state.get("vendor") == "1"
    assert dict(span.attributes or {}) == {
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": revision,
        "gen_ai.tool.name": "add",
        "gen_ai.operation.name": "execute_tool",
        "jsonrpc.request.id": str(reply["id"]),
        "network.transport": "tcp",
        "network.protocol.name": "http",
    }
    (inner,) = named(spans, "inner")
    assert inner.parent is not None
    assert inner.parent.span_id == context.span_id


async def test_a_message_that_names_no_trace_joins_that_of_its_http_request(
    spans: InMemorySpanExporter, serve: Serve
) -> None:
    for headers, trace_id in (({"traceparent": PARENT}, TRACE), ({}, None), ({"traceparent": "00-nonsense"}, None)):
        spans.clear()
        async with connect(await serve(make()), headers=headers) as mcp:
            await mcp.tools.call("add", {"a": 1, "b": 2})
        (span,) = named(spans, "tools/call add")
        assert (hexes(span)[0] == trace_id) is (trace_id is not None)


async def test_a_message_that_names_what_is_no_trace_is_served(spans: InMemorySpanExporter, serve: Serve) -> None:
    async with connect(await serve(make()), headers={"traceparent": PARENT}) as mcp:
        for wrong in ({"traceparent": "00-1"}, {"traceparent": 7, "baggage": []}, {"tracestate": "x" * 9999}):
            params = {"name": "add", "arguments": {"a": 1, "b": 2}, "_meta": wrong}
            assert "result" in await mcp.raw.request({"method": "tools/call", "params": params})
    assert {hexes(span) for span in named(spans, "tools/call add")} == {(TRACE, CALLER)}


async def test_how_a_request_failed_stands_in_its_span(spans: InMemorySpanExporter, serve: Serve) -> None:
    async with connect(await serve(make())) as mcp:
        await mcp.tools.call("fail")
        await mcp.raw.request({"method": "tools/call", "params": {"name": "nothing", "arguments": {}}})
        await mcp.raw.request({"method": "no/such", "params": {}})
        mcp.on_elicitation(lambda asked: accept({"confirm": True}))
        await mcp.tools.call("ask")
    (failed,), (unknown,), (no_method,) = (
        named(spans, "tools/call fail"),
        named(spans, "tools/call nothing"),
        named(spans, "no/such"),
    )
    assert (failed.attributes or {})["error.type"] == "tool_error"
    assert (unknown.attributes or {})["rpc.response.status_code"] == "-32602"
    assert (no_method.attributes or {})["error.type"] == "-32601"
    assert all(span.status.status_code is StatusCode.ERROR for span in (failed, unknown, no_method))
    assert [span.status.status_code for span in named(spans, "tools/call ask")] == [StatusCode.UNSET] * 2


async def test_initialize_is_a_request_too(spans: InMemorySpanExporter, serve: Serve) -> None:
    async with connect(await serve(make()), revision="2025-06-18"):
        pass
    (span,) = named(spans, "initialize")
    assert (span.attributes or {})["mcp.protocol.version"] == "2025-06-18"


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-06-18"])
async def test_a_call_of_a_server_behind_carries_the_trace_on(
    spans: InMemorySpanExporter, serve: Serve, plain: Plain, revision: str
) -> None:
    async with connect(await serve(plain.bridge()), revision=revision) as mcp:
        mcp.on_elicitation(lambda asked: accept({"confirm": True}))
        await mcp.tools.call("close", {"what": "T-1"})
    (traced,) = [line.split()[1] for line in plain.lines if line.startswith("traced")]
    client = named(spans, "tools/call close", SpanKind.CLIENT)[0]
    server = named(spans, "tools/call close", SpanKind.SERVER)[0]
    context = client.get_span_context()
    assert context is not None
    assert traced.split("-")[1:3] == [f"{context.trace_id:032x}", f"{context.span_id:016x}"]
    assert client.parent == server.get_span_context()
    assert len(named(spans, "tools/call close", SpanKind.CLIENT)) == 2, "one to its question, one from there on"


async def test_a_modern_server_behind_gets_the_trace_and_its_baggage(spans: InMemorySpanExporter, serve: Serve) -> None:
    seen: list[dict[str, Any]] = []
    answer = tools(Counter())

    def handle(message: dict[str, Any]) -> tuple[int, Any]:
        if message["method"] == "tools/call":
            seen.append(message["params"]["_meta"])
        return answer(message)

    async with http_server(handle) as url, connect(await serve(Bridge.wrap(url))) as mcp:
        call = {"name": "two_rounds", "arguments": {}, "_meta": dict(META)}
        await mcp.raw.request({"method": "tools/call", "params": call})
    (client,) = named(spans, "tools/call two_rounds", SpanKind.CLIENT)
    context = client.get_span_context()
    assert context is not None
    assert seen[0]["traceparent"] == f"00-{TRACE}-{context.span_id:016x}-01"
    assert seen[0]["tracestate"] == "vendor=1"
    assert seen[0]["baggage"] == "user=ada"


async def test_where_nobody_traces_nothing_stands_in_the_way_and_the_trace_passes_through(
    serve: Serve, plain: Plain
) -> None:
    app = plain.bridge().asgi()
    async with app.lifespan(), connect(app) as mcp:
        assert type(app.parts.modern).__name__ == "ModernEra"
        assert type(app.parts.legacy).__name__ == "LegacyEra"
        call = {"name": "echo", "arguments": {}, "_meta": dict(META)}
        await mcp.raw.request({"method": "tools/call", "params": call})
    assert f"traced {PARENT}" in plain.lines
