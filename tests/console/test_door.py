"""Who may look: the token, the login, the forms."""

import pytest
from starlette.requests import Request
from starlette.responses import Response

from bridge.errors import ConfigurationError
from bridge.pages.door import LOGIN_SECONDS, MAX_ATTEMPTS, Door

TOKEN = "a-token-that-nobody-guesses"


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def request(address: str = "10.0.0.1", scheme: str = "http", **headers: str) -> Request:
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "scheme": scheme, "path": "/", "headers": raw, "client": (address, 1)}
    return Request({**scope, "server": ("localhost", 80), "query_string": b""})


def login(door: Door, scheme: str = "http") -> str:
    response = Response()
    door.log_in(request(scheme=scheme), response)
    return response.headers["set-cookie"]


def cookie(door: Door) -> str:
    return login(door).partition(";")[0]


@pytest.mark.parametrize(
    ("header", "entered"),
    [
        (f"Bearer {TOKEN}", "in"),
        (f"bearer  {TOKEN}", "in"),
        (f"Basic {TOKEN}", "out"),
        ("Bearer", "out"),
        (f"Bearer {TOKEN}x", "out"),
        ("", "out"),
    ],
)
def test_a_bearer_header_opens_with_the_token_alone(header: str, entered: str) -> None:
    assert Door(TOKEN).entered(request(authorization=header)) == entered


def test_a_login_opens_and_every_node_with_the_token_knows_it() -> None:
    assert Door(TOKEN).entered(request(cookie=cookie(Door(TOKEN)))) == "in"
    assert Door("another-token-altogether").entered(request(cookie=cookie(Door(TOKEN)))) == "out"


def test_a_login_ends() -> None:
    clock = Clock()
    door = Door(TOKEN, clock)
    held = cookie(door)
    clock.now += LOGIN_SECONDS - 1
    assert door.entered(request(cookie=held)) == "in"
    clock.now += 1
    assert door.entered(request(cookie=held)) == "out"


@pytest.mark.parametrize(
    "spoil", [lambda held: held[:-1] + "0z"[held[-1] == "0"], lambda held: held.replace("=", "=9", 1)]
)
def test_a_cookie_that_was_changed_opens_nothing(spoil: object) -> None:
    door = Door(TOKEN)
    assert door.entered(request(cookie=spoil(cookie(door)))) == "out"  # type: ignore[operator]


def test_a_cookie_is_for_this_site_alone_and_for_https_where_that_is_spoken() -> None:
    plain, secure = login(Door(TOKEN)).lower(), login(Door(TOKEN), "https").lower()
    for given in (plain, secure):
        assert "httponly" in given
        assert "samesite=strict" in given
        assert TOKEN not in given
    assert "secure" not in plain
    assert "secure" in secure


def test_a_form_belongs_to_one_login() -> None:
    door = Door(TOKEN)
    mine, other = request(cookie=cookie(door)), request(cookie=cookie(door))
    assert door.is_form(mine, door.form_token(mine))
    assert not door.is_form(mine, door.form_token(other))
    assert not door.is_form(request(), "")
    assert not door.is_form(mine, None)


def test_wrong_tokens_are_bounded_for_each_address_and_forgotten_after_a_minute() -> None:
    clock = Clock()
    door = Door(TOKEN, clock)
    for _ in range(MAX_ATTEMPTS):
        assert door.try_token(request(), "wrong") == "out"
    assert door.try_token(request(), TOKEN) == "too_many"
    assert door.try_token(request("10.0.0.2"), TOKEN) == "in"
    clock.now += 60
    assert door.try_token(request(), TOKEN) == "in"


def test_what_is_kept_of_wrong_tokens_is_bounded() -> None:
    door = Door(TOKEN)
    for number in range(1500):
        door.try_token(request(f"10.0.{number // 250}.{number % 250}"), "wrong")
    assert len(door._wrong) == 1024


def test_a_token_that_could_be_guessed_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="at least 20 characters, not 6"):
        Door("secret")
