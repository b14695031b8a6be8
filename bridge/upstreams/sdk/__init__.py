"""Server objects of the SDKs of others, driven in this process."""

from bridge.upstreams.sdk.detect import server_of

__all__ = ["server_of"]
