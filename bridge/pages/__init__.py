"""Web pages for people, served beside a bridge. Need Starlette (extra `serve`)."""

from bridge.pages.playground import Playground, PlaygroundRules

__all__ = ["Playground", "PlaygroundRules"]
