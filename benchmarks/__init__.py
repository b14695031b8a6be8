"""Benchmarks of the bridge against mcp 2.3 and against a bare ASGI app. `python -m benchmarks --help`."""
