"""`python -m bridge`."""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; without its packages, say which extra brings them."""
    try:
        from bridge.cli import app
    except ImportError as error:
        sys.exit(f"error: the command line needs {error.name}: pip install 'mcp-session-bridge[serve]'")
    app()


if __name__ == "__main__":
    main()
