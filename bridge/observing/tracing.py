"""Spans of OpenTelemetry: one a request, in the trace of who called, and one a call of the server behind.

The trace travels in `_meta` as `traceparent`, `tracestate` and `baggage`; where they are not there, in HTTP headers.
A call of the server behind carries it on in its `_meta`. Names and attributes are those of the semantic conventions for
MCP, but for `mcp.session.id`: who has it has the session.
Nothing of this is in the way where no tracer provider is set when the app starts. Needs the extra `otel`.
Source: basic/index#_meta of 2026-07-28.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, cast

import msgspec

from bridge.errors import MissingExtraError
from bridge.observing.around import Answer, Asked
from bridge.protocol.messages import Json
from bridge.upstreams.base import Call, Failed, Finished, Outcome, Upstream
from bridge.upstreams.results import CODE_KEY

try:
    from opentelemetry import context, propagate, trace
    from opentelemetry.baggage.propagation import W3CBaggagePropagator
    from opentelemetry.context import Context
    from opentelemetry.propagators.composite import CompositePropagator
    from opentelemetry.trace import (
        NoOpTracerProvider,
        ProxyTracerProvider,
        Span,
        SpanKind,
        Status,
        StatusCode,
        get_tracer_provider,
    )
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ImportError:
    raise MissingExtraError("tracing=True", "otel") from None

__all__ = ["around_upstream", "is_traced", "traced"]

_META: Final = CompositePropagator([TraceContextTextMapPropagator(), W3CBaggagePropagator()])
_CARRIED: Final = ("traceparent", "tracestate", "baggage")
_TRANSPORTS: Final = {"http": "http", "websocket": "websocket"}


def is_traced() -> bool:
    """Whether somebody has set a tracer provider."""
    return not isinstance(get_tracer_provider(), ProxyTracerProvider | NoOpTracerProvider)


async def traced(asked: Asked, answer: Answer) -> Json:
    """See `Around`: the span of one request."""
    http = None if asked.exchange is None else asked.exchange.http
    params = asked.request.params
    parent = _parent(params.get("_meta"), http)
    attributes = {
        **_about(asked.request.method, str(params.get("name", "")), str(params.get("uri", ""))),
        "mcp.protocol.version": asked.revision,
        "jsonrpc.request.id": str(asked.request.id),
        **_transport(http),
    }
    with _span(asked.request.method, params.get("name"), SpanKind.SERVER, attributes, parent) as span:
        reply = await answer()
        if "error" in reply:
            _failed(span, str(reply["error"]["code"]), str(reply["error"]["message"]))
        else:
            _read_result(span, reply["result"])
        return reply


class _TracedUpstream:
    """A wrapped server, each of whose calls is a span that its request carries on.

    Args:
        upstream: what is wrapped.
    """

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._upstream, name)

    async def run(self, call: Call) -> Outcome:
        """See `Upstream`."""
        request = call.request
        target = None if request.method == "resources/read" else request.target
        attributes = _about(request.method, request.target, request.target)
        with _span(request.method, target, SpanKind.CLIENT, attributes) as span:
            carrier: dict[str, str] = {}
            _META.inject(carrier)
            call.request = msgspec.structs.replace(request, meta={**request.meta, **carrier})
            try:
                outcome = await self._upstream.run(call)
            finally:
                call.request = request
            if isinstance(outcome, Failed):
                _failed(span, str(outcome.code), outcome.message)
            elif isinstance(outcome, Finished):
                _read_result(span, outcome.result)
            return outcome


def around_upstream(upstream: Upstream) -> Upstream:
    """An upstream with a span around each of its calls."""
    return cast(Upstream, _TracedUpstream(upstream))


@contextmanager
def _span(
    method: str, target: object, kind: SpanKind, attributes: Mapping[str, str], parent: Context | None = None
) -> Iterator[Span]:
    name = f"{method} {target}" if isinstance(target, str) else method
    # Attached, and not only given as the parent: what runs within finds the baggage too.
    token = None if parent is None else context.attach(parent)
    try:
        with trace.get_tracer("bridge").start_as_current_span(name, None, kind, attributes) as span:
            yield span
    finally:
        if token is not None:
            context.detach(token)


def _parent(meta: object, http: Mapping[str, Any] | None) -> Context | None:
    """Where the span belongs: what the message says, else what is current here, else what its HTTP request says."""
    carrier = {key: meta[key] for key in _CARRIED if isinstance(meta.get(key), str)} if isinstance(meta, dict) else {}
    if carrier:
        found = _META.extract(carrier)
        if trace.get_current_span(found).get_span_context().is_valid:
            return found
    if http is None or trace.get_current_span().get_span_context().is_valid:
        return None
    return propagate.extract({name.decode("latin-1"): value.decode("latin-1") for name, value in http["headers"]})


def _about(method: str, name: str, uri: str) -> dict[str, str]:
    about = {"mcp.method.name": method}
    if method == "tools/call":
        about |= {"gen_ai.tool.name": name, "gen_ai.operation.name": "execute_tool"}
    elif method == "prompts/get":
        about["gen_ai.prompt.name"] = name
    elif method.startswith("resources/") and uri:
        about["mcp.resource.uri"] = uri
    return about


def _transport(http: Mapping[str, Any] | None) -> dict[str, str]:
    if http is None:
        return {}
    return {"network.transport": "tcp", "network.protocol.name": _TRANSPORTS.get(http["type"], "http")}


def _read_result(span: Span, result: Json) -> None:
    if result.get("isError") is True:
        code = result.get("_meta", {}).get(CODE_KEY)
        span.set_attribute("error.type", "tool_error")
        span.set_status(Status(StatusCode.ERROR, None if code is None else str(code)))


def _failed(span: Span, code: str, message: str) -> None:
    span.set_attributes({"error.type": code, "rpc.response.status_code": code})
    span.set_status(Status(StatusCode.ERROR, message))
