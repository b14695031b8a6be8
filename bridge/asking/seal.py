"""The envelopes in which `requestState` travels and values are stored: encrypted, bound to what they belong to.

AES-256-GCM under keys derived from a ring of secrets: the first secret seals, every one opens, so that secrets can
be rotated. Each sealing process derives a key of its own from a random salt, so that random nonces stay far from
the limit of a single key. Time and random bytes come in as arguments. What is wrong with an envelope is for the
log only: whoever presented it gets one sentence. Source: basic/patterns/mrtr#server-requirements-basic-workflow.
"""

import base64
import binascii
import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from bridge.errors import ConfigurationError

__all__ = ["BROKEN_SEAL", "BoundSeal", "Broken", "Claims", "KeyRing", "Seal"]

BROKEN_SEAL: Final = "Invalid or expired requestState; send the call again without it"
"""What everybody gets whose `requestState` does not hold, whatever the cause."""

_VERSION: Final = b"\x01"
_KID, _SALT, _NONCE = 4, 16, 12
_HEADER: Final = len(_VERSION) + _KID + _SALT + _NONCE
_SECRET_BYTES: Final = 32


class Claims(msgspec.Struct, frozen=True, array_like=True):
    """What an envelope is bound to. All but `expires_at` must be equal when it comes back.

    Args:
        store: the random id of the store with which the state was made.
        audience: the name of the server.
        principal: who it was made for.
        method: the method of the call.
        target: the name or URI that the call names.
        arguments: the digest of the call's canonical arguments.
        expires_at: seconds since the epoch.
    """

    store: str
    audience: str
    principal: str
    method: str
    target: str
    arguments: str
    expires_at: float = 0.0


class Broken(msgspec.Struct, frozen=True):
    """An envelope that does not hold, with the reason for the log."""

    reason: str


class KeyRing:
    """The secrets of a bridge: the first seals, all open.

    Args:
        keys: secrets of 32 bytes each, newest first.

    Raises:
        ConfigurationError: no secret, or one of another length.
    """

    def __init__(self, keys: Sequence[bytes]) -> None:
        if not keys:
            raise ConfigurationError("a key ring needs at least one secret of 32 bytes")
        for key in keys:
            if len(key) != _SECRET_BYTES:
                raise ConfigurationError(f"a secret must have {_SECRET_BYTES} bytes, not {len(key)}")
        self.keys = {hashlib.sha256(b"mcp-session-bridge key id" + key).digest()[:_KID]: key for key in keys}
        self.first = next(iter(self.keys))

    @classmethod
    def parse(cls, text: str, source: str) -> "KeyRing":
        """Read a ring from a text: one secret a line, 64 hexadecimal digits each; `#` begins a comment.

        Args:
            text: the lines.
            source: what to call them in an error.

        Raises:
            ConfigurationError: a line that is no secret, by its number, or no secret at all.
        """
        keys = []
        for number, line in enumerate(text.splitlines(), 1):
            digits = line.partition("#")[0].strip()
            if not digits:
                continue
            try:
                key = bytes.fromhex(digits)
            except ValueError:
                raise ConfigurationError(f"{source}, line {number}: expected 64 hexadecimal digits") from None
            if len(key) != _SECRET_BYTES:
                raise ConfigurationError(f"{source}, line {number}: expected 64 hexadecimal digits, got {len(digits)}")
            keys.append(key)
        if not keys:
            raise ConfigurationError(f"{source} holds no secret; expected a line of 64 hexadecimal digits")
        return cls(keys)


class BoundSeal:
    """Seals bytes that are bound to other bytes, which are known when they are opened.

    Args:
        ring: the secrets.
        salt: 16 random bytes of this process.
        purpose: what is sealed. What was sealed for one purpose does not open for another.
    """

    def __init__(self, ring: KeyRing, salt: bytes, purpose: str) -> None:
        self._ring = ring
        self._info = f"mcp-session-bridge {purpose}".encode()
        self._begins = _VERSION + ring.first + salt
        self._own = self._derive(ring.first, salt)
        self._ciphers = lru_cache(maxsize=256)(self._derive)

    def seal(self, plain: bytes, bound_to: bytes, nonce: bytes) -> bytes:
        """Put `plain` into an envelope that opens with the same `bound_to`; `nonce` is 12 random bytes, used once."""
        header = self._begins + nonce
        return header + self._own.encrypt(nonce, plain, header + bound_to)

    def open(self, sealed: bytes, bound_to: bytes) -> bytes | Broken:
        """Take out what `seal` put in, or say why the envelope does not hold."""
        header = sealed[:_HEADER]
        if len(header) < _HEADER or header[:1] != _VERSION:
            return Broken("not an envelope of this version")
        kid, salt, nonce = header[1:5], header[5:21], header[21:]
        if kid not in self._ring.keys:
            return Broken(f"sealed with the key {kid.hex()}, which is not in the ring")
        own = header[:21] == self._begins
        try:
            cipher = self._own if own else self._ciphers(kid, salt)
            return cipher.decrypt(nonce, sealed[_HEADER:], header + bound_to)
        except InvalidTag:
            return Broken("changed since it was sealed, or taken from elsewhere")

    def is_of_first(self, sealed: bytes) -> bool:
        """Whether `sealed` says that the secret sealed it that seals now."""
        return sealed[1:5] == self._ring.first

    def _derive(self, kid: bytes, salt: bytes) -> AESGCM:
        hkdf = HKDF(algorithm=SHA256(), length=32, salt=salt, info=self._info)
        return AESGCM(hkdf.derive(self._ring.keys[kid]))


class Seal:
    """Seals state and opens it again.

    Args:
        ring: the secrets.
        salt: 16 random bytes of this process.
    """

    def __init__(self, ring: KeyRing, salt: bytes) -> None:
        self._seal = BoundSeal(ring, salt, "requestState")

    def seal(self, claims: Claims, payload: bytes, nonce: bytes) -> str:
        """Put `payload` into an envelope bound to `claims`; `nonce` is 12 random bytes, used once."""
        sealed = self._seal.seal(msgspec.msgpack.encode((claims, payload)), b"", nonce)
        return base64.urlsafe_b64encode(sealed).decode().rstrip("=")

    def open(self, token: str, expected: Claims, now: float) -> bytes | Broken:
        """Take the payload out of an envelope.

        Args:
            token: the envelope, as a client sent it.
            expected: what the envelope must be bound to; its `expires_at` is not looked at.
            now: seconds since the epoch.

        Returns:
            The payload, or the reason why the envelope does not hold.
        """
        found = self.read(token)
        if isinstance(found, Broken):
            return found
        claims, payload = found
        reason = _difference(claims, expected, now)
        return payload if reason is None else Broken(reason)

    def read(self, token: str) -> tuple[Claims, bytes] | Broken:
        """Look into an envelope, whatever it is bound to: to show it, never to act on it.

        Args:
            token: the envelope.

        Returns:
            What it is bound to and its payload, or why it cannot be read.
        """
        try:
            raw = base64.urlsafe_b64decode(token.encode("ascii") + b"=" * (-len(token) % 4))
        except (UnicodeEncodeError, binascii.Error):
            return Broken("not base64url")
        plain = self._seal.open(raw, b"")
        return plain if isinstance(plain, Broken) else _plain_decoder.decode(plain)


_plain_decoder: Final = msgspec.msgpack.Decoder(tuple[Claims, bytes])


def _difference(claims: Claims, expected: Claims, now: float) -> str | None:
    if now < claims.expires_at and msgspec.structs.replace(expected, expires_at=claims.expires_at) == claims:
        return None
    for field in Claims.__struct_fields__:
        if field != "expires_at" and getattr(claims, field) != getattr(expected, field):
            return f"made for another {field}"
    return f"expired {now - claims.expires_at:.0f} s ago" if now >= claims.expires_at else None
