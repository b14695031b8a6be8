"""Never run: what mypy and pyright infer where a JSON Schema stands in a variable."""

from collections.abc import Mapping
from typing import Any, assert_type

from bridge import Answer, Context

SCHEMA: dict[str, Any] = {"type": "object", "properties": {}}


async def answers(ctx: Context, mapping: Mapping[str, Any]) -> None:
    assert_type(await ctx.elicit("?", SCHEMA), Answer[dict[str, Any]])
    assert_type(await ctx.elicit("?", mapping), Answer[dict[str, Any]])
    assert_type(ctx.elicit_sync("?", SCHEMA), Answer[dict[str, Any]])
