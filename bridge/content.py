"""Content blocks for a `ToolResult` and for prompts: text, image, audio, a link to a resource, a resource itself."""

from bridge.upstreams.results import audio, embedded, image, link, text

__all__ = ["audio", "embedded", "image", "link", "text"]
