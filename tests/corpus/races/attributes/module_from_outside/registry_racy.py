"""The registry's size."""

size = 0
