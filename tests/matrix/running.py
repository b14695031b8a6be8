"""The run: every server is started once directly and once behind the bridge, and every client visits it."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.matrix.cells import Cell, Verdicts, judge, unreachable
from tests.matrix.clients import Client, Driver
from tests.matrix.processes import DidNotStart
from tests.matrix.servers import Program, Server, behind_the_bridge, on_its_own

_AT_ONCE = 3
"""Servers that are visited at once. More do not help two cores: the clients take turns."""

Told = Callable[[str], None]


def run(clients: Sequence[Client], servers: Sequence[Server], told: Told, *, with_bridge: bool = True) -> list[Cell]:
    """Let every client visit every server.

    Args:
        clients: who visits.
        servers: what they visit.
        told: is told of each visit that is over.
        with_bridge: whether they visit through the bridge too.
    """
    drivers = [Driver(client) for client in clients]
    # The same program may stand behind several rows: in process, and on its own.
    programs = {server.program: server for server in servers if server.program is not None}

    try:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            behind = {
                server.name: pool.submit(_visit_through_the_bridge, drivers, server, told)
                for server in servers
                if with_bridge
            }
            alone = {
                program: pool.submit(_visit_directly, drivers, server, program, told)
                for program, server in programs.items()
            }
    finally:
        for driver in drivers:
            driver.close()
    return [
        Cell(
            client=client.name,
            server=server.name,
            direct=None if server.program is None else alone[server.program].result()[client.name],
            bridge=behind[server.name].result()[client.name] if with_bridge else None,
        )
        for client in clients
        for server in servers
    ]


def _visit_directly(drivers: Sequence[Driver], server: Server, program: Program, told: Told) -> dict[str, Verdicts]:
    seen: dict[str, Verdicts] = {}
    able: list[Driver] = []
    for driver in drivers:
        verdicts = unreachable(driver.client, program)
        if verdicts is None:
            able.append(driver)
        else:
            seen[driver.client.name] = verdicts
    try:
        with on_its_own(program) as place:
            for driver in _free_first(able):
                said = driver.visit(place, server.profile)
                seen[driver.client.name] = judge(driver.client, server, said, program.transport, by_bridge=False)
                told(f"{driver.client.name} at {server.name}")
    except DidNotStart as why:
        return seen | _nobody_came(able, server, why)
    return seen


def _visit_through_the_bridge(drivers: Sequence[Driver], server: Server, told: Told) -> dict[str, Verdicts]:
    seen: dict[str, Verdicts] = {}
    try:
        with behind_the_bridge(server) as places:
            for driver in _free_first(drivers):
                over = driver.client.over
                said = driver.visit(places[over], server.profile)
                seen[driver.client.name] = judge(driver.client, server, said, over, by_bridge=True)
                told(f"{driver.client.name} at {server.name} through the bridge")
    except DidNotStart as why:
        return seen | _nobody_came(drivers, server, why)
    return seen


def _nobody_came(drivers: Iterable[Driver], server: Server, why: DidNotStart) -> dict[str, Verdicts]:
    said = {"failed": f"the server did not start: {why}"}
    return {driver.client.name: judge(driver.client, server, said, "http", by_bridge=False) for driver in drivers}


def _free_first(drivers: Sequence[Driver]) -> Iterable[Driver]:
    """All drivers, those first that nobody else uses right now."""
    left = list(drivers)
    while left:
        driver = next((each for each in left if not each.is_busy), left[0])
        left.remove(driver)
        yield driver
