"""Several real processes behind a proxy that sends every request to another one, real clients, and real accidents."""
