"""What used_program.py uses of another module."""

SHARED = object()
