"""The core in C."""
