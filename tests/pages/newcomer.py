"""A newcomer's way: a fresh clone, the README's first command, the page, a call as a chat client. In three minutes.

`python -m tests.pages.newcomer [folder]` walks it, in a folder of its own, and says how long each part took.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.pages.browser import chromium, visit
from tests.peers.demo_server import free_port

REPOSITORY = Path(__file__).parents[2]
MAX_SECONDS = 180.0


def walk(folder: Path) -> None:
    """Go the whole way; whatever fails ends it."""
    began = time.monotonic()

    def took(what: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s  {what}", flush=True)

    clone = folder / "clone"
    subprocess.run(["git", "clone", "--quiet", REPOSITORY, clone], check=True)
    took("a fresh clone")
    with made_demo(clone) as url:
        took(f"`{first_command(clone)}` serves {url}")
        with chromium() as browser, visit(browser, url) as visitor:
            took("the page is there, and connected")
            visitor.choose("2025-06-18-chat")
            visitor.call("close_ticket", id="T-1")
            visitor.pass_on("Yes, please")
            assert '"closed": true' in visitor.outcome()
            took("a ticket is closed, by way of the chat")
    seconds = time.monotonic() - began
    if seconds > MAX_SECONDS:
        sys.exit(f"the newcomer needed {seconds:.0f} s, and has {MAX_SECONDS:.0f}")


def first_command(clone: Path) -> str:
    """The first command that the README gives."""
    block = re.search(r"```sh\n(.*?)\n", (clone / "README.md").read_text())
    assert block is not None
    return block[1].partition("#")[0].strip()


@contextmanager
def made_demo(clone: Path) -> Iterator[str]:
    """Run the first command, on a free port, until it says where the page is."""
    command = [*first_command(clone).split(), f"PORT={free_port()}"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "VIRTUAL_ENV"))}
    process = subprocess.Popen(
        command, cwd=clone, stdout=subprocess.PIPE, text=True, bufsize=1, start_new_session=True, env=environment
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if (found := re.search(r"http://\S+/$", line.strip())) is not None:
                yield found[0]
                return
        sys.exit(f"{' '.join(command)} ended and named no page")
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=20)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as new:
        walk(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(new))
