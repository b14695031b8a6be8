"""Which objects are servers, and which versions of their SDKs are known."""

import subprocess
import sys
from importlib import metadata

import pytest
from mcp.server import MCPServer
from mcp.server.lowlevel import Server

from bridge.errors import ConfigurationError
from bridge.upstreams.sdk import server_of
from bridge.upstreams.sdk.v2 import InProcessV2
from tests.upstreams.sdk.environments import ROOT

pytestmark = pytest.mark.behaviour("UPS-1")


def test_servers_of_the_sdk_are_known_and_nothing_else_is() -> None:
    for target in (MCPServer("desk"), Server("desk")):
        server = server_of(target)
        assert isinstance(server, InProcessV2)
        assert (server.name, server.protocol) == ("the server 'desk' in this process", "modern")
    assert server_of(object()) is None
    assert server_of("https://example.com/mcp") is None


def test_the_era_can_be_chosen() -> None:
    server = server_of(MCPServer("desk"), protocol="legacy")
    assert isinstance(server, InProcessV2)
    assert server.protocol == "legacy"


@pytest.mark.parametrize("found", ["1.19.2", "3.0.0", "3.0.0b1", "unknown"])
def test_a_version_that_is_not_supported_is_named(monkeypatch: pytest.MonkeyPatch, found: str) -> None:
    monkeypatch.setattr(metadata, "version", lambda name: found)
    with pytest.raises(ConfigurationError, match=r"mcp >= 1\.20, < 3"):
        server_of(MCPServer("desk"))


def test_a_server_of_mcp_1_cannot_be_driven_as_a_modern_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", lambda name: "1.30.0")
    with pytest.raises(ConfigurationError, match=r"mcp 2\.x"):
        server_of(MCPServer("desk"), protocol="modern")


def test_nothing_of_an_sdk_is_imported_to_find_out() -> None:
    code = """
import sys
from bridge.upstreams.sdk import server_of
assert server_of(object()) is None
assert not [name for name in sys.modules if name.split(".")[0] in ("mcp", "mcp_types", "fastmcp")]
"""
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
