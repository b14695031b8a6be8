"""Where key rings come from: a file, the environment, random bytes; and how the file of one is made and rotated.

Such a file holds one secret a line, the one that seals first. It must not know what is sealed.
"""

import os
import re
import secrets
import stat
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from bridge.asking.seal import KeyRing
from bridge.errors import ConfigurationError

__all__ = [
    "ENVIRONMENT",
    "KeyLine",
    "keys_beside",
    "keys_from_environment",
    "list_keys",
    "load_keys",
    "make_key_file",
    "random_keys",
    "rotate_key_file",
]

ENVIRONMENT: Final = "MCP_SESSION_BRIDGE_KEYS"
"""The environment variable that may hold a ring: secrets with a comma or white space between them, the first seals."""

_PREPARED: Final = "prepared"
_SECRET_BYTES: Final = 32


class KeyLine(msgspec.Struct, frozen=True):
    """One secret of a key file, without its bytes.

    Args:
        id: what logs call it: 8 hexadecimal digits.
        note: what the file says of it, such as the day when it was made.
        seals: whether it is the one that seals; all of them open.
        prepared: whether the next rotation makes it the one that seals.
    """

    id: str
    note: str
    seals: bool
    prepared: bool


def load_keys(path: str | Path) -> KeyRing:
    """Read a key ring from a file: one secret a line, 64 hexadecimal digits each, the first seals, all open.

    Raises:
        ConfigurationError: a file that cannot be read or that everybody can read, or a line that is no secret.
    """
    return KeyRing.parse(_read(Path(path)), str(path))


def keys_from_environment() -> KeyRing | None:
    """Read a key ring from `MCP_SESSION_BRIDGE_KEYS`; None where that is not set.

    Raises:
        ConfigurationError: something in it is no secret.
    """
    text = os.environ.get(ENVIRONMENT, "").strip()
    return KeyRing.parse("\n".join(re.split(r"[\s,]+", text)), ENVIRONMENT) if text else None


def random_keys() -> KeyRing:
    """Make a ring with one new secret, which only this process knows."""
    return KeyRing([secrets.token_bytes(_SECRET_BYTES)])


def keys_beside(path: str | Path) -> KeyRing:
    """Read the key ring that is kept beside a state file, in `<file>.key`; made now where there is none.

    Processes that make it at the same time end up with the same ring.

    Args:
        path: the state file, which need not be there yet.

    Raises:
        ConfigurationError: it can be neither read nor made, or everybody can read it.
    """
    state = Path(path)
    file = state.with_name(f"{state.name}.key")
    if not file.exists():
        try:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write_new(file, _new_line(_today()))
        except FileExistsError:
            # Another process was faster: its ring is the one.
            return load_keys(file)
        except OSError as error:
            raise ConfigurationError(f"cannot make the key file {file}: {error.strerror}") from None
    return load_keys(file)


def make_key_file(path: str | Path) -> KeyLine:
    """Make a key file (mode 0600) with one new secret.

    Raises:
        ConfigurationError: there is such a file already, or it cannot be written.
    """
    file, line = Path(path), _new_line(_today())
    try:
        _write_new(file, line)
    except FileExistsError:
        raise ConfigurationError(f"{file} is there already, and what it sealed would be lost: rotate it") from None
    except OSError as error:
        raise ConfigurationError(f"cannot make the key file {file}: {error.strerror}") from None
    return list_keys(file)[0]


def rotate_key_file(path: str | Path, *, keep: int = 3, prepare: bool = False) -> list[KeyLine]:
    """Make a new secret the one that seals: the one that was prepared, where there is one. Older ones go on opening.

    Nodes that are restarted one after the other read the file at different times. So that none of them meets what it
    cannot open, prepare the new secret first, restart them, rotate, and restart them again.

    Args:
        path: the key file, which is replaced as a whole.
        keep: how many of the older secrets stay, newest first.
        prepare: that a new secret is added that opens, and seals only from the next rotation on.

    Returns:
        What the file holds now.

    Raises:
        ConfigurationError: a file that cannot be read or replaced, one that everybody can read, or a secret that is
            prepared already.
    """
    file = Path(path)
    load_keys(file)
    lines = _secrets(_read(file))
    prepared = [line for line in lines if _is_prepared(line)]
    others = [line for line in lines if line not in prepared]
    if prepare:
        if prepared:
            raise ConfigurationError(f"{file} holds a prepared secret already: rotate it once every node has read it")
        after = [others[0], _new_line(f"{_today()} {_PREPARED}"), *others[1:]]
    else:
        first = prepared[0].replace(_PREPARED, "").rstrip() if prepared else _new_line(_today())
        after = [first, *others[:keep]]
    try:
        _replace(file, after)
    except OSError as error:
        raise ConfigurationError(f"cannot replace the key file {file}: {error.strerror}") from None
    return list_keys(file)


def list_keys(path: str | Path) -> list[KeyLine]:
    """What a key file holds, without the secrets themselves, in its order.

    Raises:
        ConfigurationError: as `load_keys`.
    """
    ring, lines = load_keys(path), _secrets(_read(Path(path)))
    ids = {secret: kid for kid, secret in ring.keys.items()}
    found = []
    for number, line in enumerate(lines):
        digits, _, note = line.partition("#")
        kid = ids[bytes.fromhex(digits.strip())]
        found.append(KeyLine(kid.hex(), note.strip(), number == 0, _is_prepared(line)))
    return found


def _secrets(text: str) -> list[str]:
    """The lines that hold one."""
    return [line.strip() for line in text.splitlines() if line.partition("#")[0].strip()]


def _is_prepared(line: str) -> bool:
    return _PREPARED in line.partition("#")[2].split()


def _new_line(note: str) -> str:
    return f"{secrets.token_hex(_SECRET_BYTES)}  # made {note}"


def _today() -> str:
    return time.strftime("%Y-%m-%d", time.gmtime())


def _read(path: Path) -> str:
    try:
        with path.open() as file:
            _check_mode(path, os.fstat(file.fileno()).st_mode)
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise ConfigurationError(f"cannot read the key file {path}: {reason}") from None


def _check_mode(path: Path, mode: int) -> None:
    # What others could write they could also have chosen. Windows has no such modes.
    if sys.platform != "win32" and stat.S_ISREG(mode) and mode & (stat.S_IROTH | stat.S_IWOTH):
        raise ConfigurationError(
            f"the key file {path} can be read by every user of this machine (mode {mode & 0o777:04o}): chmod 600 {path}"
        )


@contextmanager
def _written(beside: Path, lines: Sequence[str]) -> Iterator[str]:
    """A new file in the same folder, mode 0600, whole and on the disk, by its name; what is left of it goes."""
    handle, name = tempfile.mkstemp(prefix=f".{beside.name}.", dir=beside.parent)
    try:
        with os.fdopen(handle, "w") as file:
            file.write("".join(f"{line}\n" for line in lines))
            file.flush()
            os.fsync(file.fileno())
        yield name
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)


def _write_new(path: Path, line: str) -> None:
    """Put a file where none is; a reader sees all of it or nothing.

    Raises:
        FileExistsError: there is one.
    """
    with _written(path, (line,)) as name:
        os.link(name, path)


def _replace(path: Path, lines: Sequence[str]) -> None:
    # A link to the file, such as a mounted secret is, stays one.
    target = path.resolve()
    with _written(target, lines) as name:
        os.replace(name, target)
