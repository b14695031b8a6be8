"""The wire tap: every message that leaves the server is held against the revision it leaves under.

Two oracles judge a message: closed copies of the published schemas (`schemas.py`, where the folder
`../shared/spec` stands beside the repository) and the wire models of `mcp_types` (`models.py`, always).
What neither can say stands in `rules.py`. Nothing here knows `bridge`: the tap sees only what is sent.

    tap = Tap()
    client = Client(tap_asgi(bridge.asgi(), tap))
    ...
    tap.assert_clean()
"""

from .asgi import tap_asgi
from .rules import LEGACY, MODERN, REVISIONS
from .schemas import SPEC_FOLDER
from .tap import Conversation, Tap

__all__ = ["LEGACY", "MODERN", "REVISIONS", "SPEC_FOLDER", "Conversation", "Tap", "tap_asgi"]
