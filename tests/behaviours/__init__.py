"""Tests of what the product does, each naming the behaviours that it proves."""
