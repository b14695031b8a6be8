"""What an author gives by name: the options of a bridge, and what is said of a tool, a prompt and a resource."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import (
    ConfigDict,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    TypeAdapter,
    ValidationError,
    with_config,
)
from typing_extensions import TypedDict

from bridge.asking.routes import ClientRule
from bridge.errors import ConfigurationError
from bridge.routes.push import PushLimits
from bridge.server import Authenticate, Transport
from bridge.session import SessionLimits
from bridge.upstreams.functions import ToolAnnotations

__all__ = ["OptionFields", "PromptFields", "ResourceFields", "ToolFields", "check_options"]


class OptionFields(TypedDict, total=False):
    """The fields of `Options`, as arguments of `Bridge`."""

    elicitation: bool
    fallback: Literal["result", "wait", "off"]
    wait_seconds: PositiveFloat
    chat_consent: Literal["allow", "deny"]
    on_invalid: Literal["error", "reask"]
    not_secret: tuple[str, ...]
    client_rules: tuple[ClientRule, ...]
    page_size: PositiveInt
    sessions: SessionLimits
    push: PushLimits
    round_seconds: NonNegativeFloat
    pending_seconds: NonNegativeFloat | None
    grace_seconds: NonNegativeFloat
    shutdown_seconds: NonNegativeFloat
    allowed_hosts: tuple[str, ...]
    allowed_origins: tuple[str, ...]
    list_ttl_seconds: NonNegativeFloat
    read_ttl_seconds: NonNegativeFloat
    authenticate: Authenticate | None
    threads: PositiveInt
    transports: tuple[Transport, ...]
    health: bool
    metrics: bool


class ToolFields(TypedDict, total=False):
    """What an author may say of a tool; see `Bridge.tool`."""

    name: str
    title: str
    description: str
    annotations: ToolAnnotations
    icons: list[dict[str, Any]]
    meta: dict[str, Any]
    input_schema: dict[str, Any]
    on_invalid: Literal["error", "reask"]
    not_secret: tuple[str, ...]
    duplicates: Literal["same", "separate"]


class PromptFields(TypedDict, total=False):
    """What an author may say of a prompt; see `Bridge.prompt`."""

    name: str
    title: str
    description: str
    icons: list[dict[str, Any]]
    meta: dict[str, Any]


class ResourceFields(PromptFields, total=False):
    """What an author may say of a resource; see `Bridge.resource`."""

    mime_type: str


def check_options(options: Mapping[str, Any]) -> None:
    """Check the options of a bridge.

    Raises:
        ConfigurationError: naming each that is unknown, or cannot work.
    """
    try:
        _checker.validate_python(options)
    except ValidationError as error:
        lines = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors(include_url=False))
        raise ConfigurationError(f"Bridge was given options that cannot work: {lines}") from None


_checker: TypeAdapter[Any] = TypeAdapter(
    with_config(ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=True))(OptionFields)
)
