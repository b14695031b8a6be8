"""The page `docs/conformance.md`: the same for the same outcome, whenever and wherever it is run."""

from collections.abc import Iterator, Sequence

from tests.conformance.running import Result
from tests.conformance.suite import PACKAGE

__all__ = ["page"]

_HEAD = f"""# Conformance

What the official conformance suite, `{PACKAGE}`, says of the bridge: how many
scenarios passed, of all that the suite has for a revision. A scenario has passed when none of its checks failed and
none was skipped. `python -m tests.conformance` writes this page, and fails when a scenario does not pass that is not
named below, or one passes that is.

The suite's client always asks for 2025-11-25; a proxy makes it ask for an older revision where that is said.
The native server is [examples/everything.py](../examples/everything.py). In front of the servers of others the bridge
is set up as [behind.py](../tests/conformance/servers/behind.py) says: what their client declares is declared to them
(`declare="caller"`), and one tool's question has a name (`keys=`). As a client of 2026-07-28 it is told to speak that
alone (`protocol="modern"`): by itself it would also ask the server whether it begins sessions, as
[wrapping](wrapping.md) says.
"""
_NOT_RUN = """
## What is not run

- The scenarios of the suite's client part that are about OAuth (`auth/…`): the bridge is no OAuth client. UPS-14: "A
  caller's token never goes upstream; the upstream's own comes from `--header`."
- The scenarios of extensions (`tasks-…`, `sep-2640-…`). UPS-13: "extensions that we do not bridge are not advertised".
"""


def page(results: Sequence[Result]) -> str:
    """The page."""
    return "\n".join([_HEAD, *_table(results), *_details(results), _NOT_RUN])


def _table(results: Sequence[Result]) -> Iterator[str]:
    figures = {result.leg.name: f"{result.passed} of {result.leg.count}" for result in results}
    yield "| leg | scenarios of | passed | without the bridge |"
    yield "| --- | --- | --- | --- |"
    for result in results:
        leg = result.leg
        if not leg.bare:
            without = figures.get(leg.without, "")
            yield f"| {leg.title} (`{leg.name}`) | {leg.revision} | {figures[leg.name]} | {without} |"


def _details(results: Sequence[Result]) -> Iterator[str]:
    yield "\n## What does not pass\n"
    for result in results:
        for name, reason in sorted(result.leg.not_passed.items()):
            yield f"- `{result.leg.name}`, {name}: {reason}"
    yield "\n## What passes with a warning\n"
    for result in results:
        for scenario in result.scenarios:
            if scenario.passed and scenario.warnings and not result.leg.bare:
                yield f"- `{result.leg.name}`, {scenario.name}: {_ON_PURPOSE.get(scenario.name, scenario.warnings[0])}"


_ON_PURPOSE = {
    "input-required-result-ignore-extra-params": (
        "it sends answers to a call that has asked nothing. MOD-6: '`inputResponses` with no `requestState` are "
        "ignored: the question is asked'."
    ),
    "sep-2164-resource-not-found": (
        "the server behind says that there is no such resource with the code 0. UPS-8: 'JSON-RPC errors keep code, "
        "message and data'."
    ),
}
