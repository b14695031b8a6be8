"""Servers in other processes and on other machines, over every transport, of either era."""

from bridge.upstreams.remote.server import Protocol, RemoteServer
from bridge.upstreams.remote.targets import Command, Target, Url

__all__ = ["Command", "Protocol", "RemoteServer", "Target", "Url"]
