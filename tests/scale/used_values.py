"""Values of another module, which used_program.py uses."""

SHARED = object()
