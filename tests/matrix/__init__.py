"""The compatibility matrix: every client against every server, directly and through the bridge.

`python -m tests.matrix` runs it, and writes `docs/compatibility.md` and `matrix.json`.
"""
