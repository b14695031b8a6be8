"""The bridge in front of the suite's server, as its operator sets it up: `UPSTREAM` is its URL.

Serve it with `python -m bridge serve tests/conformance/servers/behind.py:bridge`.
"""

import os

from bridge import Bridge, ToolRules, WrapRules

bridge = Bridge.wrap(
    os.environ["UPSTREAM"],
    rules=WrapRules(
        # One scenario has a client that cannot be asked, and a server that looks whether it can.
        declare="caller",
        # Another one knows by which name its question goes.
        tools={"test_input_required_result_elicitation": ToolRules(keys=("user_name",))},
    ),
)
