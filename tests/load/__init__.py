"""Long runs that write what they find into `docs/reliability.md`; the tests of `tests/fleet` make short ones."""
