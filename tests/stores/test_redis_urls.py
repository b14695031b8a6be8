"""What the URL of a Redis server may say, and what is said about one that cannot work."""

from typing import Any

import pytest

from bridge.errors import ConfigurationError
from bridge.stores.redis_urls import RedisUrl, parse


@pytest.mark.parametrize(
    ("url", "read"),
    [
        ("redis://", {"kind": "single", "hosts": (("localhost", 6379),)}),
        ("redis://h/2", {"kind": "single", "hosts": (("h", 6379),), "db": 2}),
        ("redis://h?db=2", {"kind": "single", "hosts": (("h", 6379),), "db": 2}),
        ("valkey://h:1", {"kind": "single", "hosts": (("h", 1),)}),
        ("redis://[::1]:7", {"kind": "single", "hosts": (("::1", 7),)}),
        ("redis://:p%40w@h", {"kind": "single", "hosts": (("h", 6379),), "connection": {"password": "p@w"}}),
        (
            "rediss://u:p@h?ssl_ca_certs=/ca.pem&ssl_check_hostname=false",
            {
                "kind": "single",
                "hosts": (("h", 6379),),
                "connection": {
                    "username": "u",
                    "password": "p",
                    "ssl": True,
                    "ssl_ca_certs": "/ca.pem",
                    "ssl_check_hostname": False,
                },
            },
        ),
        ("unix:///run/r.sock?db=3", {"kind": "single", "socket": "/run/r.sock", "db": 3}),
        (
            "redis+sentinel://a,b:7/mymaster/1?prefix=desk&sentinel_password=s",
            {
                "kind": "sentinel",
                "hosts": (("a", 26379), ("b", 7)),
                "service": "mymaster",
                "db": 1,
                "prefix": "desk",
                "sentinel": {"password": "s"},
            },
        ),
        (
            "rediss+sentinel://u:p@a/m?ssl_ca_certs=/c",
            {
                "kind": "sentinel",
                "hosts": (("a", 26379),),
                "service": "m",
                "connection": {"username": "u", "password": "p", "ssl": True, "ssl_ca_certs": "/c"},
                "sentinel": {"ssl": True, "ssl_ca_certs": "/c"},
            },
        ),
        ("redis+cluster://a:1,b:2", {"kind": "cluster", "hosts": (("a", 1), ("b", 2))}),
        ("rediss+cluster://a", {"kind": "cluster", "hosts": (("a", 6379),), "connection": {"ssl": True}}),
    ],
)
def test_a_url_says_where_servers_are_and_how_they_are_reached(url: str, read: dict[str, Any]) -> None:
    assert parse(url) == RedisUrl(**read)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://u:pw@h", "the scheme 'http' is none of"),
        ("redis://u:pw@h:port", "'h:port' is no host:port"),
        ("redis://u:pw@h:99999", "'h:99999' is no host:port"),
        ("redis://u:pw@h/x", "the database 'x' is no number"),
        ("redis://u:pw@h/1/2", "the database '1/2' is no number"),
        ("redis://u:pw@h?db=x", "the option 'db' has a value"),
        ("redis://u:pw@h?sokcet_timeout=1", "the option 'sokcet_timeout' is none of"),
        ("redis://u:pw@h?ssl_ca_certs=/c", "begin with rediss://"),
        ("redis+cluster://u:pw@h?ssl_ca_certs=/c", r"begin with rediss\+cluster://"),
        ("rediss://u:pw@h?ssl_check_hostname=perhaps", "'ssl_check_hostname' has a value"),
        ("redis://u:pw@a,b", r"say redis\+sentinel:// or redis\+cluster://"),
        ("redis+sentinel://u:pw@a:1", "the name that Sentinels give the server is missing"),
        ("redis+cluster://u:pw@a:1/3", "a Cluster has no databases but 0"),
        ("redis://u:pw@[::1", "Invalid IPv6 URL"),
    ],
)
def test_a_url_that_cannot_work_is_refused_in_one_line_without_its_password(url: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said) as raised:
        parse(url)
    assert "pw" not in str(raised.value)
    assert "\n" not in str(raised.value)
