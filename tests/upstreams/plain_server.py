"""A legacy server over stdio, by hand and with nothing but the standard library: its tools are generators that ask.

What it does to the world, it writes to the journal that its first argument names: one line an effect. The ids of its
questions start at 0. `--rude` makes it answer `notifications/cancelled` with an error, as some servers do; `--blocking`
makes it do nothing else while a question is open.
"""

import json
import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

Json = dict[str, Any]
Tool = Generator[Json, Json, Json]

CONFIRM = {
    "type": "object",
    "properties": {"confirm": {"type": "boolean", "title": "Really?"}},
    "required": ["confirm"],
}
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
PASSWORD = {"type": "object", "properties": {"password": {"type": "string"}}, "required": ["password"]}


def journal(line: str) -> None:
    with Path(sys.argv[1]).open("a") as file:
        file.write(line + "\n")


def say(message: Json) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(content: str, **more: Any) -> Json:
    return {"content": [{"type": "text", "text": content}], **more}


def form(message: str, schema: Json = CONFIRM) -> Json:
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


def close(arguments: Json, params: Json) -> Tool:
    """Write, ask, write: an author who knows of no bridge."""
    what = arguments["what"]
    journal(f"began {what}")
    answer = yield form(f"Close {what}?")
    ended = "closed" if answer.get("content", {}).get("confirm") else f"kept ({answer.get('action')})"
    journal(f"{ended} {what}")
    return text(f"{ended} {what}")


def greet(arguments: Json, params: Json) -> Tool:
    first = yield form("What is your name?", NAME)
    if first["action"] != "accept":
        return text(f"no name: {first['action']}")
    name = first["content"]["name"]
    second = yield form(f"Are you sure, {name}?")
    return text(f"{name} is {'sure' if second.get('content', {}).get('confirm') else 'not sure'}")


def sign_in(arguments: Json, params: Json) -> Tool:
    answer = yield form("Your password?", PASSWORD)
    return text(f"got {answer['action']}")


def open_page(arguments: Json, params: Json) -> Tool:
    page = {"mode": "url", "message": "Sign in", "url": "https://example.com/in", "elicitationId": "page-1"}
    answer = yield {"method": "elicitation/create", "params": page}
    say({"method": "notifications/elicitation/complete", "params": {"elicitationId": "page-1"}})
    return text(f"page: {answer['action']}")


def summarize(arguments: Json, params: Json) -> Tool:
    message = {"role": "user", "content": {"type": "text", "text": "Sum up"}}
    answer = yield {"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": 9}}
    return text(f"sampled: {json.dumps(answer, sort_keys=True)}")


def roots(arguments: Json, params: Json) -> Tool:
    answer = yield {"method": "roots/list"}
    return text(f"roots: {json.dumps(answer, sort_keys=True)}")


def needs_page(arguments: Json, params: Json) -> Tool:
    """An error that wants a page opened; afterwards the call does without."""
    seen = Path(sys.argv[1] + ".page")
    if not seen.exists():
        seen.touch()
        page = {"mode": "url", "message": "Connect", "url": "https://example.com/c", "elicitationId": "c-1"}
        return {"error": {"code": -32042, "message": "Connect first", "data": {"elicitations": [page]}}}
    return text("connected")
    yield {}


def fail(arguments: Json, params: Json) -> Tool:
    return {"error": {"code": arguments["code"], "message": "no", "data": {"why": [1, {"deep": 2**70}]}}}
    yield {}


def echo(arguments: Json, params: Json) -> Tool:
    novel = {"novel": True} if arguments.get("novel") else {}
    return {
        "content": [{"type": "text", "text": "echo", **novel}],
        "structuredContent": {"arguments": arguments, "big": 2**70, "float": 1e30, "one": 1.0},
        "_meta": {"example.com/trace": params.get("_meta", {}).get("example.com/trace")},
        **({"unknownField": {"kept": [None, False]}} if novel else {}),
    }
    yield {}


def count_up(arguments: Json, params: Json) -> Tool:
    token = params.get("_meta", {}).get("progressToken")
    for step in range(1, arguments["steps"] + 1):
        if token is not None:
            about = {"progressToken": token, "progress": step, "total": arguments["steps"], "message": f"step {step}"}
            say({"method": "notifications/progress", "params": about})
        say({"method": "notifications/message", "params": {"level": "warning", "data": f"step {step}"}})
    return text("counted")
    yield {}


def ask_and_count(arguments: Json, params: Json) -> Tool:
    answer = yield form("Count?")
    journal(f"counts {answer['action']}")
    yield from count_up(arguments, params)
    return text("counted")


def ask_and_hang(arguments: Json, params: Json) -> Tool:
    yield form("Hang?")
    journal("hanging")
    yield {}


def touch(arguments: Json, params: Json) -> Tool:
    say({"method": "notifications/resources/updated", "params": {"uri": arguments["uri"]}})
    say({"method": "notifications/tools/list_changed"})
    return text("touched")
    yield {}


def die(arguments: Json, params: Json) -> Tool:
    os._exit(3)
    yield {}


TOOLS = {
    tool.__name__: tool
    for tool in (
        close,
        greet,
        sign_in,
        open_page,
        summarize,
        roots,
        needs_page,
        fail,
        echo,
        count_up,
        ask_and_count,
        ask_and_hang,
        touch,
        die,
    )
}
CAPABILITIES = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True},
    "prompts": {},
    "extensions": {"x": {}},
}


class Server:
    def __init__(self) -> None:
        self.next_id = 0
        self.asking: dict[int, tuple[Any, Tool]] = {}

    def serve(self) -> None:
        for line in sys.stdin:
            self.heard(line)
        journal("ended")

    def heard(self, line: str) -> None:
        message = json.loads(line)
        if "method" not in message:
            self.answered(message)
        elif "id" in message:
            self.requested(message["id"], message["method"], message.get("params", {}))
        elif message["method"] == "notifications/roots/list_changed":
            journal("roots changed")
        elif message["method"] == "notifications/cancelled":
            self.cancelled(message["params"]["requestId"])

    def serve_until_answered(self) -> None:
        """Do nothing else while a question is open, as servers without tasks or threads do."""
        later = []
        for line in sys.stdin:
            if "method" not in json.loads(line):
                self.answered(json.loads(line))
                break
            later.append(line)
        for line in later:
            self.heard(line)

    def requested(self, identity: Any, method: str, params: Json) -> None:
        if "traceparent" in params.get("_meta", {}):
            journal(f"traced {params['_meta']['traceparent']}")
        if method == "tools/call" and params["name"] == "hang":
            journal("hanging")
            return
        if method == "tools/call" and params["name"] in TOOLS:
            tool = TOOLS[params["name"]](params["arguments"], params)
            self.advance(identity, tool, None)
            return
        results: dict[str, Json] = {
            "initialize": {
                "protocolVersion": "2025-11-25",
                "capabilities": CAPABILITIES,
                "serverInfo": {"name": "plain", "version": "7"},
                "instructions": "Be plain.",
            },
            "ping": {},
            "tools/list": {"tools": [self.definition(name) for name in (*TOOLS, "sendElicitationResult", "slow_task")]},
            "prompts/list": {"prompts": [{"name": "hello", "description": "Greets."}]},
            "prompts/get": {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}]},
            "resources/list": {"resources": [{"uri": "note://1", "name": "note"}]},
            "resources/templates/list": {"resourceTemplates": []},
            "resources/subscribe": {},
            "resources/unsubscribe": {},
        }
        if method in ("resources/subscribe", "resources/unsubscribe"):
            journal(f"{method.removeprefix('resources/')}d {params['uri']}")
        if method == "initialize":
            self.asked_by = params
            journal(f"initialize {json.dumps(params['capabilities'], sort_keys=True)}")
        if method == "resources/read":
            say({"id": identity, "error": {"code": -32002, "message": "none", "data": {"uri": params["uri"]}}})
        elif method in results:
            say({"id": identity, "result": results[method]})
        else:
            say({"id": identity, "error": {"code": -32601, "message": f"no {method}"}})

    def definition(self, name: str) -> Json:
        tool: Json = {"name": name, "description": name, "inputSchema": {"type": "object"}, "novel": 1}
        if name == "slow_task":
            tool["execution"] = {"taskSupport": "required"}
        if name in ("greet", "echo"):
            tool["annotations"] = {"readOnlyHint": True}
        return tool

    def advance(self, identity: Any, tool: Tool, answer: Json | None) -> None:
        try:
            question = next(tool) if answer is None else tool.send(answer)
        except StopIteration as ended:
            kind = "error" if "error" in ended.value else "result"
            say({"id": identity, kind: ended.value.get("error", ended.value)})
            return
        self.asking[self.next_id] = (identity, tool)
        if question:
            say({"id": self.next_id, **question})
        self.next_id += 1
        if "--blocking" in sys.argv:
            self.serve_until_answered()

    def answered(self, message: Json) -> None:
        if message["id"] in self.asking:
            identity, tool = self.asking.pop(message["id"])
            self.advance(identity, tool, message.get("result", {"action": "error", **message}))

    def cancelled(self, identity: Any) -> None:
        journal(f"cancelled {identity}")
        for question, (asker, tool) in list(self.asking.items()):
            if asker == identity:
                tool.close()
                del self.asking[question]
                if "--rude" in sys.argv:
                    say({"id": identity, "error": {"code": 0, "message": "Request cancelled"}})


if __name__ == "__main__":
    Server().serve()
