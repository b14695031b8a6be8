"""What the tests of the transports begin with serves here too."""

from tests.behaviours.conftest import bridge, work

__all__ = ["bridge", "work"]
