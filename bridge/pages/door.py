"""Who may look at what the operator sees: a secret token, as a bearer header or behind a login that makes a cookie.

Nothing is kept: the cookie is authenticated with the token, so that every node that has the token knows it, and a new
token ends every login. An address at which nobody else is supposed to be proves nothing, and is not asked for.
"""

import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Literal, TypeAlias

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from bridge.errors import ConfigurationError

__all__ = ["LOGIN_SECONDS", "MAX_ATTEMPTS", "MIN_TOKEN", "Door", "Entered"]

MIN_TOKEN: Final = 20
"""How many characters a token has at least."""

MAX_ATTEMPTS: Final = 10
"""How many wrong tokens an address may send in a minute."""

LOGIN_SECONDS: Final = 8 * 3600
"""How long a login lasts."""

_COOKIE: Final = "bridge-console"
_WINDOW_SECONDS: Final = 60.0
_MAX_ADDRESSES: Final = 1024

Entered: TypeAlias = Literal["in", "out", "too_many"]
"""Whether somebody is in, is not, or has tried too often."""


class _Attempts(msgspec.Struct):
    since: float
    count: int = 0


class Door:
    """Lets in who has the token.

    Args:
        token: the secret.
        clock: seconds since the epoch.

    Raises:
        ConfigurationError: a token that could be guessed.
    """

    def __init__(self, token: str, clock: Callable[[], float] = time.time) -> None:
        if len(token) < MIN_TOKEN:
            raise ConfigurationError(
                f"a console token has at least {MIN_TOKEN} characters, not {len(token)}: make one with "
                "python -c 'import secrets; print(secrets.token_urlsafe(32))'"
            )
        self._token = hashlib.sha256(token.encode()).digest()
        self._key = hmac.digest(token.encode(), b"mcp-session-bridge console", "sha256")
        self._clock = clock
        self._wrong: OrderedDict[str, _Attempts] = OrderedDict()

    def entered(self, request: Request) -> Entered:
        """Whether a request is from who has the token: by a bearer header, or else by the cookie of a login."""
        header = request.headers.get("authorization")
        if header is None:
            return "in" if self._login(request) is not None else "out"
        scheme, _, token = header.partition(" ")
        if scheme.lower() != "bearer":
            return "out"
        return self.try_token(request, token.strip())

    def try_token(self, request: Request, token: str) -> Entered:
        """Compare a token, in constant time; wrong ones are counted for each address."""
        address = "" if request.client is None else request.client.host
        now = self._clock()
        attempts = self._wrong.get(address)
        if attempts is None or now - attempts.since >= _WINDOW_SECONDS:
            attempts = _Attempts(now)
        if attempts.count >= MAX_ATTEMPTS:
            return "too_many"
        if hmac.compare_digest(hashlib.sha256(token.encode("utf-8", "replace")).digest(), self._token):
            return "in"
        attempts.count += 1
        self._wrong[address] = attempts
        self._wrong.move_to_end(address)
        while len(self._wrong) > _MAX_ADDRESSES:
            self._wrong.popitem(last=False)
        return "out"

    def log_in(self, request: Request, response: Response) -> None:
        """Give a browser the cookie of a login."""
        name = f"{int(self._clock()) + LOGIN_SECONDS}.{secrets.token_urlsafe(16)}"
        response.set_cookie(
            _COOKIE,
            f"{name}.{self._sign('login', name)}",
            max_age=LOGIN_SECONDS,
            path="/",
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )

    def log_out(self, response: Response) -> None:
        """Take the cookie back."""
        response.delete_cookie(_COOKIE, path="/", httponly=True, samesite="strict")

    def form_token(self, request: Request) -> str:
        """What the forms of this login carry, and no other site can know; empty without a login."""
        login = self._login(request)
        return "" if login is None else self._sign("form", login)

    def is_form(self, request: Request, token: object) -> bool:
        """Whether a form was made by a page of this login."""
        wanted = self.form_token(request)
        return bool(wanted) and isinstance(token, str) and hmac.compare_digest(token.encode(), wanted.encode())

    def _login(self, request: Request) -> str | None:
        """The name of the login that a request's cookie holds, if it is ours and not over."""
        name, _, signature = request.cookies.get(_COOKIE, "").rpartition(".")
        if not hmac.compare_digest(signature.encode(), self._sign("login", name).encode()):
            return None
        until = name.partition(".")[0]
        return name if until.isdigit() and int(until) > self._clock() else None

    def _sign(self, use: str, name: str) -> str:
        return hmac.digest(self._key, f"{use} {name}".encode(), "sha256").hex()
