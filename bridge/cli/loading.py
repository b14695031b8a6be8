"""From what stands on the command line to what is served: an attribute of a module or file, a URL, or a command."""

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from bridge.errors import ConfigurationError
from bridge.upstreams.targets import Command

__all__ = ["load_target", "read_headers"]

_FORMS = "file.py:attribute, module:attribute, a URL, or -- and a command with its arguments"


def load_target(words: Sequence[str], *, is_command: bool) -> Any:
    """Find what is to be served.

    Args:
        words: what stands there.
        is_command: whether it stands after `--`.

    Returns:
        The object, the URL, or a `Command`.

    Raises:
        ConfigurationError: there is no such thing. The text says what was looked for.
    """
    if not words:
        raise ConfigurationError(f"a target is missing: {_FORMS}")
    if is_command:
        return Command(words[0], tuple(words[1:]))
    if len(words) > 1:
        raise ConfigurationError(f"one target is served, not {len(words)}; a command stands after --: -- {words[0]} …")
    target = words[0]
    if "://" in target:
        return target
    place, separator, attribute = target.rpartition(":")
    if not separator or not place or not attribute:
        raise ConfigurationError(f"{target!r} is no target: give {_FORMS}")
    found: Any = _module(place)
    for name in attribute.split("."):
        if not hasattr(found, name):
            raise ConfigurationError(f"{place} has no attribute {attribute!r}{_instead(found)}")
        found = getattr(found, name)
    return found


def read_headers(lines: Sequence[str] | None) -> dict[str, str]:
    """Read HTTP headers as they are given to `--header`.

    Raises:
        ConfigurationError: one is not of the form `Name: value`.
    """
    headers: dict[str, str] = {}
    for line in lines or ():
        field, separator, value = line.partition(":")
        if not separator or not field.strip():
            raise ConfigurationError(f"--header wants 'Name: value', not {line!r}")
        headers[field.strip()] = value.strip()
    return headers


def _instead(module: Any) -> str:
    names = [name for name, value in vars(module).items() if not name.startswith("_") and _looks_served(value)]
    return f"; it has {', '.join(names)}" if names else ""


def _looks_served(value: object) -> bool:
    return type(value).__name__ in ("Bridge", "FastMCP", "MCPServer", "Server")


def _module(place: str) -> ModuleType:
    is_file = place.endswith(".py")
    if is_file and not Path(place).is_file():
        raise ConfigurationError(f"there is no file {place}")
    try:
        return _load_file(Path(place)) if is_file else _import(place)
    except (Exception, SystemExit) as error:
        # It is the user's code that runs here, and it may raise anything.
        if isinstance(error, ModuleNotFoundError) and error.name == place:
            raise ConfigurationError(f"there is no module {place}") from None
        raise ConfigurationError(f"{place} cannot be imported: {type(error).__name__}: {error}") from error


def _import(name: str) -> ModuleType:
    sys.path.insert(0, str(Path.cwd()))
    return importlib.import_module(name)


def _load_file(path: Path) -> ModuleType:
    """Run a file as Python would run it: its folder comes first where its imports are looked for."""
    sys.path.insert(0, str(path.resolve().parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module
