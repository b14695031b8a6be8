"""Sessions that are opened and abandoned."""
