"""Where key rings come from: a file, or random bytes."""

import secrets
from pathlib import Path

from bridge.asking.seal import KeyRing
from bridge.errors import ConfigurationError

__all__ = ["load_keys", "random_keys"]


def load_keys(path: str | Path) -> KeyRing:
    """Read a key ring from a file: one secret a line, 64 hexadecimal digits each, the first seals, all open.

    Raises:
        ConfigurationError: a file that cannot be read, or a line that is no secret.
    """
    try:
        text = Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise ConfigurationError(f"cannot read the key file {path}: {reason}") from None
    return KeyRing.parse(text, str(path))


def random_keys() -> KeyRing:
    """Make a ring with one new secret, which only this process knows."""
    return KeyRing([secrets.token_bytes(32)])
