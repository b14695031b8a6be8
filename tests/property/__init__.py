"""Properties: what holds for every form, journal and message that hypothesis can draw.

In CI (`CI` is set) the same examples are drawn each time; elsewhere others are, and failures are kept in `.hypothesis`.
"""

import os

from hypothesis import settings

settings.register_profile("local", deadline=None, max_examples=60)
settings.register_profile("ci", settings.get_profile("local"), derandomize=True, database=None, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")
