"""Tests of what operators see: `/explain` and the console."""
