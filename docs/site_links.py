"""A hook of MkDocs: what lies outside `docs/` is named in the site, not linked, since the site does not have it."""

import re
from typing import Any, Final

__all__ = ["on_page_markdown"]

_OUTSIDE: Final = re.compile(r"\[(?P<text>[^\]]+)\]\((?:\.\./)+(?P<path>[^)#\s]+)\)")


def on_page_markdown(markdown: str, **about: Any) -> str:
    """Write `[a server](../examples/x.py)` as `a server (examples/x.py)`; where the text is the path, that is all."""

    def named(link: re.Match[str]) -> str:
        text, path = link["text"], link["path"]
        return f"`{path}`" if text.strip("`") == path else f"{text} (`{path}`)"

    is_nested = "/" in about["page"].file.src_path
    return markdown if is_nested else _OUTSIDE.sub(named, markdown)
