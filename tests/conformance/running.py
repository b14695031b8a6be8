"""The run: each leg's server is started, visited by the suite, and ended. What is not as known is a failure."""

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from tests.conformance.legs import Leg
from tests.conformance.suite import REPOSITORY, Scenario, SuiteFailed, run_client_suite, run_server_suite
from tests.matrix.processes import DidNotStart

__all__ = ["Result", "run", "unlike"]

_AT_ONCE = 2
"""Legs that run at once. The client's scenarios look at the clock, so that no more do on two cores."""

_MAY_SKIP = frozenset({"http-standard-headers", "request-metadata"})
"""Scenarios that look for methods and capabilities which their own server leaves no use for."""

Told = Callable[[str], None]


class Result(msgspec.Struct, frozen=True):
    """What came of a leg.

    Args:
        leg: the leg.
        scenarios: each scenario, by name.
        failures: what is not as it is known to be; empty where all is well.
    """

    leg: Leg
    scenarios: tuple[Scenario, ...]
    failures: tuple[str, ...]

    @property
    def passed(self) -> int:
        """How many scenarios passed."""
        return sum(scenario.passed for scenario in self.scenarios)


def run(legs: Sequence[Leg], told: Told) -> list[Result]:
    """Run legs.

    Args:
        legs: which.
        told: is told of each leg that is over.
    """

    def one(leg: Leg) -> Result:
        try:
            scenarios = _visit(leg)
        except (DidNotStart, SuiteFailed) as why:
            result = Result(leg, (), (f"{leg.name}: {why}",))
        else:
            result = Result(leg, tuple(scenarios), () if leg.bare else tuple(unlike(leg, scenarios)))
        told(f"{leg.name}: {result.passed} of {leg.count}")
        return result

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(one, legs))


def _visit(leg: Leg) -> list[Scenario]:
    if leg.start is None:
        command = (sys.executable, str(REPOSITORY / "tests/conformance/driver.py"), leg.driver)
        return run_client_suite(command, leg.revision, leg.scenarios, _MAY_SKIP)
    with leg.start() as url:
        return run_server_suite(url, leg.revision)


def unlike(leg: Leg, scenarios: list[Scenario]) -> list[str]:
    """What is not as the leg says: both ways, so that no reason outlives what it is for."""
    unlike = [
        f"{leg.name}: {scenario.name} did not pass: {'; '.join(scenario.failures)}"
        for scenario in scenarios
        if not scenario.passed and scenario.name not in leg.not_passed
    ]
    known = {scenario.name: scenario for scenario in scenarios}
    for name in leg.not_passed:
        if name not in known:
            unlike.append(f"{leg.name}: there is no scenario {name}, which is known not to pass")
        elif known[name].passed:
            unlike.append(f"{leg.name}: {name} passed, and is known not to: take it off the list")
    if len(scenarios) != leg.count:
        unlike.append(f"{leg.name}: {len(scenarios)} scenarios were run, not {leg.count}")
    return unlike
