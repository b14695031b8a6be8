"""The help desk: the server of `python -m bridge demo`, and the subject of the tests against real clients."""
