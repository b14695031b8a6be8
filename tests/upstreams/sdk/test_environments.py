"""Servers of `mcp` 1.x and of FastMCP 2, 3 and 4: `peer_servers.py` runs in an environment of each."""

import os
import subprocess

import pytest

from tests.upstreams.sdk.environments import ROOT, SERVERS, environment

pytestmark = [pytest.mark.peers, pytest.mark.behaviour("UPS-1"), pytest.mark.timeout(400)]

# Nothing of the checkout's own configuration: the environment lacks what that needs.
OPTIONS = ("-c", os.devnull, "--rootdir", str(ROOT), "--noconftest", "-p", "no:cacheprovider", "-o", "anyio_mode=auto")


@pytest.mark.parametrize("name", SERVERS)
def test_unmodified_servers_work_behind_the_bridge(name: str) -> None:
    command = [
        str(environment(name)),
        "-m",
        "pytest",
        *OPTIONS,
        "--timeout=60",
        "-q",
        "tests/upstreams/sdk/peer_servers.py",
    ]
    ran = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr[-2000:]
