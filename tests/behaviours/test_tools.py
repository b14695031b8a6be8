"""Tools as their authors write them: schemas of their own, and the content of results."""

from typing import Any

import pytest

from bridge import Bridge, ConfigurationError, Context
from bridge.testing import connect
from tests.conftest import Serve

behaviour = pytest.mark.behaviour

EITHER: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {"phone": {"type": "string"}, "email": {"type": "string"}},
    "anyOf": [{"required": ["phone"]}, {"required": ["email"]}],
    "additionalProperties": False,
}


@behaviour("ASK-20")
@pytest.mark.parametrize("revision", ["2024-11-05", "2025-11-25", "2026-07-28"])
async def test_a_schema_that_the_author_wrote_is_listed_as_it_is_and_checked(serve: Serve, revision: str) -> None:
    bridge, seen = Bridge("tools"), list[Any]()

    @bridge.tool(input_schema=EITHER)
    def reach(arguments: dict[str, Any], ctx: Context) -> str:
        seen.append(arguments)
        return "reached"

    async with connect(await serve(bridge), revision=revision) as mcp:
        (listed,) = await mcp.tools.list()
        assert listed["inputSchema"] == EITHER
        assert (await mcp.tools.call("reach", {"phone": "1"})).text() == "reached"
        refused = await mcp.tools.call("reach", {"phone": 1, "fax": "2"})
        assert refused.error_code == "INVALID_INPUT"
        assert "phone: 1 is not of type 'string'" in refused.text()
        assert "fax" in refused.text()
    assert seen == [{"phone": "1"}]


@pytest.mark.parametrize(
    ("schema", "reason"),
    [({"type": "object", "required": 3}, "no JSON Schema"), ({"type": "array"}, "object"), ({}, "object")],
    ids=str,
)
def test_a_schema_that_describes_no_arguments_is_refused(schema: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):

        @Bridge("tools").tool(input_schema=schema)
        def reach(arguments: dict[str, Any]) -> str:
            return ""


def test_a_tool_with_a_schema_of_its_own_takes_all_arguments_as_one() -> None:
    with pytest.raises(ConfigurationError, match="one dict"):

        @Bridge("tools").tool(input_schema=EITHER)
        def reach(phone: str, email: str) -> str:
            return ""
