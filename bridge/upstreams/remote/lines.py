"""Makes lines of what comes in pieces. Pure."""

__all__ = ["Lines"]


class Lines:
    """Cuts a stream of bytes at its newlines.

    Args:
        limit: how long a line may be. Of a longer one its beginning comes, longer than this, and the rest is skipped.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rest = bytearray()
        self._is_skipping = False

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that are complete now, without those that are blank."""
        *whole, rest = data.split(b"\n")
        if whole:
            first, self._rest = bytes(self._rest) + whole[0], bytearray()
            whole[0] = b"" if self._is_skipping else first
            self._is_skipping = False
        if not self._is_skipping:
            self._rest += rest
            if len(self._rest) > self._limit:
                whole.append(bytes(self._rest))
                self._rest, self._is_skipping = bytearray(), True
        return [line for line in whole if line and not line.isspace()]

    def end(self) -> list[bytes]:
        """Return the last line, where it has come without its end."""
        return self.feed(b"\n")
