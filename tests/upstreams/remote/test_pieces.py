"""What is pure: lines and events out of bytes that come in any pieces."""

import random

import pytest

from bridge.errors import ProtocolError
from bridge.protocol.lines import LineSplitter
from bridge.upstreams.remote.events import Event, EventReader

STREAM = (
    b"\xef\xbb\xbf: comment\r\n\r\n"
    b"id: 1\r\nretry: 250\r\ndata\r\n\r\n"
    b"data: a\ndata:b\nid: 2\nunknown: x\n\n"
    b"event: endpoint\rdata: /x\r\r"
    b"id: bad\x00id\nretry: 1.5\ndata: c: d\n\n"
    b"id: 9\ndata: cut off\n"
)
EVENTS = [Event("message", b"a\nb"), Event("endpoint", b"/x"), Event("message", b"c: d")]


@pytest.mark.parametrize("seed", range(40))
def test_events_are_the_same_in_whatever_pieces_they_come(seed: int) -> None:
    choose, reader, events, rest = random.Random(seed), EventReader(1000), [], STREAM
    # The mark at the beginning comes in one piece, as every sender writes it.
    size = 3
    while rest:
        events += reader.feed(rest[:size])
        rest, size = rest[size:], choose.randint(1, 9)
    assert events == EVENTS
    assert reader.last_id == "2"
    assert reader.retry_seconds == 0.25
    reader.reconnect()
    assert reader.feed(b"data: new\n\n") == [Event("message", b"new")]
    assert reader.last_id == "2"


def test_an_event_has_a_largest_size_and_many_small_ones_have_not() -> None:
    reader = EventReader(100)
    for _ in range(100):
        assert reader.feed(b"data: small\n\n") == [Event("message", b"small")]
    with pytest.raises(ProtocolError, match="larger than 100"):
        reader.feed(b"data: small\n" * 20)
    reader = EventReader(100)
    with pytest.raises(ProtocolError):
        reader.feed(b"x" * 200)


@pytest.mark.parametrize("seed", range(40))
def test_lines_are_the_same_in_whatever_pieces_they_come(seed: int) -> None:
    choose, lines, found = random.Random(seed), LineSplitter(10), []
    rest = b"one\n\n  \r\ntwo\r\n" + b"x" * 50 + b"\nthree\nfour"
    while rest:
        size = choose.randint(1, 9)
        found += lines.feed(rest[:size])
        rest = rest[size:]
    found += lines.end()
    assert [line for line in found if len(line) <= 10] == [b"one", b"two\r", b"three", b"four"]
    (long,) = [line for line in found if len(line) > 10]
    assert set(long) == {ord("x")}
    assert lines.end() == []
