"""Makes lines of bytes that come in pieces, as a pipe gives them. Pure."""

__all__ = ["LineSplitter"]


class LineSplitter:
    """Makes lines of what comes in pieces.

    Args:
        limit: of a longer line its beginning comes, longer than this, and the rest is skipped without being kept.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held = bytearray()
        self._is_skipping = False

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that are complete now, without those that are blank."""
        *lines, rest = data.split(b"\n")
        if lines and self._is_skipping:
            del lines[0]
            self._is_skipping = False
        elif lines and self._held:
            lines[0] = bytes(self._held) + lines[0]
            self._held.clear()
        if rest and not self._is_skipping:
            self._held += rest
            if len(self._held) > self._limit:
                lines.append(bytes(self._held))
                self._held.clear()
                self._is_skipping = True
        return [line for line in lines if line and not line.isspace()]

    def end(self) -> list[bytes]:
        """Return the last line, where it has come without its end."""
        return self.feed(b"\n")
