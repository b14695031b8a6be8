"""A form must not ask for a secret: what passes through a client, or through a model, is none any more.

Source: client/elicitation (the warning at its head): servers use URL mode for credentials.
"""

import re
from collections.abc import Collection, Iterator
from typing import Final

from bridge.protocol.messages import Json

__all__ = ["described_secrets", "secret_fields"]

_SECRETS: Final = (
    "password",
    "passphrase",
    "secret",
    "api key",
    "access token",
    "private key",
    "card number",
    "cvv",
    "pin",
)
_HARMLESS: Final = frozenset({"count", "limit", "policy", "hint", "expiry", "last4"})
"""Words that make a field one about a secret, not the secret."""

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+\d*|\d+")


def secret_fields(schema: Json, allowed: Collection[str] = ()) -> Iterator[str]:
    """The free-text fields of a form that ask for a secret by their name, title or format.

    Args:
        schema: the flat schema of a form.
        allowed: fields that the author says are none.
    """
    for name, field in schema["properties"].items():
        if name in allowed or not _is_free_text(field):
            continue
        if field.get("format") == "password" or _asks(name) or _asks(field.get("title", "")):
            yield name


def described_secrets(schema: Json, allowed: Collection[str] = ()) -> Iterator[str]:
    """The free-text fields whose description speaks of a secret: worth a warning, not a refusal."""
    for name, field in schema["properties"].items():
        if name not in allowed and _is_free_text(field) and _asks(field.get("description", "")):
            yield name


def _is_free_text(field: Json) -> bool:
    return field["type"] == "string" and "enum" not in field and "oneOf" not in field


def _asks(text: str) -> bool:
    words = [word.lower() for word in _WORD.findall(text)]
    if "last" in words and "4" in words:
        return False
    if not _HARMLESS.isdisjoint(words):
        return False
    joined = f" {' '.join(word.rstrip('0123456789') for word in words)} "
    return any(f" {secret} " in joined or f" {secret.replace(' ', '')} " in joined for secret in _SECRETS)
