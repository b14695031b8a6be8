"""Ten thousand idle sessions and a thousand open questions."""
