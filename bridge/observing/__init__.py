"""Who looks on: metrics and traces. They stand around what does the work, which knows nothing of them."""
