"""Benchmarks of the bridge against its peers and against the barest that could be. `python -m benchmarks --help`."""
