"""Drives the Inspector's command line: every request is a run of its own, and so a client of its own. See `plan.py`.

Run it with the command that starts the command line.
"""

import asyncio
import json
import os
import sys
import tempfile
from typing import Any

from plan import Json, OnProgress, Plan, drive


class Refused(Exception):
    """What the command line printed of an error."""

    def __init__(self, error: Json) -> None:
        super().__init__(error["message"])
        self.error = error


async def converse(plan: Plan) -> None:
    """Follow a plan, a run a request."""
    with tempfile.TemporaryDirectory() as home:
        if plan.child is None:
            target = ["--transport", plan.transport, "--server-url", plan.url]
            command: list[str] = []
        else:
            target, command = ["--transport", "stdio"], ["--", plan.child["command"], *plan.child["args"]]

        async def run(method: str, *options: str) -> Any:
            process = await asyncio.create_subprocess_exec(
                *sys.argv[1:],
                *target,
                *("--format", "json", "--method", method),
                *options,
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env={**os.environ, "HOME": home},
            )
            try:
                said, complained = await process.communicate()
            finally:
                if process.returncode is None:
                    process.kill()
            if said:
                return json.loads(said)["result"]
            raise Refused(_error_in(complained.decode()))

        async def list_tools() -> list[Json]:
            tools: list[Json] = (await run("tools/list"))["tools"]
            return tools

        async def call_tool(name: str, arguments: Json, moved: OnProgress) -> Json:
            called: Json = await run("tools/call", "--tool-name", name, "--tool-args-json", json.dumps(arguments))
            return called

        async def request(method: str, params: Json) -> Json:
            got: Json = await run(method)
            return got

        plan.report["revision"] = ""
        await plan.run(list_tools, call_tool, request, _error)


def _error_in(complaint: str) -> Json:
    for line in complaint.splitlines():
        if line.startswith("{"):
            error: Json = json.loads(line)["error"]
            return error
    return {"message": complaint.strip()}


def _error(error: Exception) -> Json:
    return error.error if isinstance(error, Refused) else {"message": repr(error)}


drive(converse)
