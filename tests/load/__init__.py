"""Runs that are too long for the tests: what they found is kept, and `docs/reliability.md` is made of it."""
