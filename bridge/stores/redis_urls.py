"""The URL of a Redis or Valkey server, of one that Sentinels watch, or of a Cluster. Pure: nothing is connected.

    redis://user:password@host:6379/0            unix:///run/redis.sock?db=0
    redis+sentinel://h1:26379,h2:26379/mymaster/0
    redis+cluster://h1:7000,h2:7001

`rediss` in place of `redis` is TLS. Errors never repeat a URL, which may hold a password.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec
from msgspec.structs import replace

from bridge.errors import ConfigurationError

__all__ = ["SCHEMES", "RedisUrl", "parse"]

Kind = Literal["single", "sentinel", "cluster"]

SCHEMES: Final[Mapping[str, tuple[Kind, bool]]] = {
    "redis": ("single", False),
    "rediss": ("single", True),
    "unix": ("single", False),
    "valkey": ("single", False),
    "valkeys": ("single", True),
    "redis+sentinel": ("sentinel", False),
    "rediss+sentinel": ("sentinel", True),
    "redis+cluster": ("cluster", False),
    "rediss+cluster": ("cluster", True),
}
"""What a URL may begin with: what it names, and whether over TLS."""

_PORTS: Final[Mapping[Kind, int]] = {"single": 6379, "sentinel": 26379, "cluster": 6379}


class RedisUrl(msgspec.Struct, frozen=True, kw_only=True):
    """What a URL says.

    Args:
        kind: one server, one that Sentinels watch, or a Cluster.
        hosts: where they are, with their ports; empty for a socket.
        socket: the path of a Unix socket.
        service: what Sentinels call the server.
        db: the number of the database.
        connection: what else connections are made with, as redis-py calls it: user, password, TLS.
        sentinel: what connections to Sentinels are made with.
        prefix: what the names of keys begin with, where the URL says it.
    """

    kind: Kind
    hosts: tuple[tuple[str, int], ...] = ()
    socket: str = ""
    service: str = ""
    db: int = 0
    connection: Mapping[str, Any] = {}
    sentinel: Mapping[str, Any] = {}
    prefix: str | None = None


def parse(url: str) -> RedisUrl:
    """Read a URL.

    Raises:
        ConfigurationError: it is none of the forms above. The text names the part that is wrong.
    """
    scheme, _, rest = url.partition("://")
    if scheme not in SCHEMES:
        raise _wrong(f"the scheme {scheme!r} is none of {', '.join(SCHEMES)}")
    kind, tls = SCHEMES[scheme]
    try:
        # Several hosts make no network location: only what surrounds them is split here.
        parts = urlsplit(f"redis://{rest}")
    except ValueError as error:
        raise _wrong(str(error)) from None
    login, _, places = parts.netloc.rpartition("@")
    options = _options(parts.query)
    connection = _connection(login, options, scheme, tls=tls)
    common = RedisUrl(kind=kind, connection=connection, prefix=options.get("prefix"))
    if scheme == "unix":
        return replace(common, socket=unquote(parts.path), db=options.get("db", 0))
    hosts = tuple(_host(place, _PORTS[kind]) for place in places.split(","))
    if kind == "single" and len(hosts) > 1:
        raise _wrong("it names several servers: say redis+sentinel:// or redis+cluster://")
    names = [unquote(name) for name in parts.path.split("/") if name]
    if kind != "sentinel":
        return replace(common, hosts=hosts, db=_db(names, options, kind))
    if not names:
        raise _wrong("the name that Sentinels give the server is missing: redis+sentinel://h1:26379/mymaster/0")
    watching = _watching(connection, options)
    return replace(common, hosts=hosts, service=names[0], db=_db(names[1:], options, kind), sentinel=watching)


def _connection(login: str, options: Mapping[str, Any], scheme: str, *, tls: bool) -> dict[str, Any]:
    found: dict[str, Any] = _login(login)
    found.update((name, value) for name, value in options.items() if name not in _NO_CONNECTION)
    if tls:
        found["ssl"] = True
    elif any(name.startswith("ssl_") for name in found):
        raise _wrong(f"ssl_… are options of TLS: begin with {scheme.replace('redis', 'rediss')}://")
    return found


def _watching(connection: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """What connections to Sentinels are made with: TLS like the server's, a user and password of their own."""
    found = {name: value for name, value in connection.items() if name.startswith("ssl")}
    for name in ("username", "password"):
        if f"sentinel_{name}" in options:
            found[name] = options[f"sentinel_{name}"]
    return found


def _wrong(what: str) -> ConfigurationError:
    return ConfigurationError(f"not the URL of a Redis server: {what}")


def _login(login: str) -> dict[str, str]:
    user, _, password = login.partition(":")
    found = {"username": unquote(user), "password": unquote(password)}
    return {name: value for name, value in found.items() if value}


def _host(place: str, default_port: int) -> tuple[str, int]:
    try:
        parts = urlsplit(f"//{place}")
        port = parts.port
    except ValueError:
        raise _wrong(f"the place {place!r} is no host:port") from None
    return parts.hostname or "localhost", port or default_port


def _db(names: list[str], options: Mapping[str, Any], kind: Kind) -> int:
    given = names[0] if names else str(options.get("db", 0))
    if len(names) > 1 or not given.isdecimal():
        raise _wrong(f"the database {'/'.join(names) or given!r} is no number")
    if kind == "cluster" and int(given):
        raise _wrong("a Cluster has no databases but 0")
    return int(given)


def _flag(text: str) -> bool:
    return {"true": True, "1": True, "false": False, "0": False}[text.lower()]


_OPTIONS: Final[Mapping[str, Callable[[str], Any]]] = {
    "db": int,
    "prefix": str,
    "username": str,
    "password": str,
    "client_name": str,
    "sentinel_username": str,
    "sentinel_password": str,
    "ssl_ca_certs": str,
    "ssl_certfile": str,
    "ssl_keyfile": str,
    "ssl_cert_reqs": str,
    "ssl_check_hostname": _flag,
}
_NO_CONNECTION: Final = frozenset({"db", "prefix", "sentinel_username", "sentinel_password"})


def _options(query: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in _OPTIONS:
            raise _wrong(f"the option {name!r} is none of {', '.join(_OPTIONS)}")
        try:
            found[name] = _OPTIONS[name](value)
        except (ValueError, KeyError):
            raise _wrong(f"the option {name!r} has a value that cannot be") from None
    return found
