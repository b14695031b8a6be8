"""The four ways in which a question reaches the user of one client."""
