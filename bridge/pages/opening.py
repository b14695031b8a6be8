"""Looking into a `requestState`: for whoever it was made for, and only to show it."""

import msgspec

from bridge.asking.seal import Broken, KeyRing, Seal
from bridge.protocol.clients import Principal
from bridge.protocol.messages import Json
from bridge.routes.rounds import RoundState

__all__ = ["opened"]

_NO_SALT = bytes(16)


def opened(keys: KeyRing, token: str, principal: Principal) -> Json | Broken:
    """Open the envelope that travels as `requestState`.

    Args:
        keys: what it was sealed with.
        token: the envelope.
        principal: who wants to see it; what was made for somebody else stays closed.

    Returns:
        `claims`, what it is bound to, and `state`, what the next round needs; or why it stays closed.
    """
    found = Seal(keys, _NO_SALT).read(token)
    if isinstance(found, Broken):
        return found
    claims, payload = found
    if claims.principal != principal.name:
        return Broken("made for another principal")
    try:
        state = _decoder.decode(payload)
    except msgspec.DecodeError:
        return Broken("not the state of a round")
    return {"claims": _named(claims), "state": _named(state)}


def _named(record: msgspec.Struct) -> Json:
    """A record by the names of its fields, although it travels as an array."""
    fields = record.__struct_fields__
    return {name: msgspec.to_builtins(getattr(record, name)) for name in fields}


_decoder = msgspec.msgpack.Decoder(RoundState)
