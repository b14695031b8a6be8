"""What other tests begin with serves here too."""

from tests.behaviours.conftest import bridge, work
from tests.upstreams.conftest import plain

__all__ = ["bridge", "plain", "work"]
