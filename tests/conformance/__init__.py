"""The official conformance suite, run at the bridge in every place where it can stand.

`python -m tests.conformance` runs it all and writes `docs/conformance.md`.
"""
