"""`python -m tests.peers install` makes the environments of the peers; `list` says what is there."""

import sys

from tests.peers.environments import REQUIREMENTS, NotInstalled, folder, install, is_complete


def main(command: str) -> int:
    """Run a command for every environment; return the process's exit code."""
    failed = False
    for name, requirements in REQUIREMENTS.items():
        if command == "install":
            try:
                install(name)
            except NotInstalled as reason:
                failed = True
                print(f"{name}: {reason}", file=sys.stderr)
        state = "complete" if is_complete(name) else "missing"
        print(f"{name}  {state}  {' '.join(requirements)}  {folder(name)}")
    return 1 if failed else 0


if __name__ == "__main__":
    if sys.argv[1:] not in (["install"], ["list"]):
        sys.exit("usage: python -m tests.peers install|list")
    sys.exit(main(sys.argv[1]))
