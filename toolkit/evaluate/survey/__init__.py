"""Examine each package of a list on free-threaded builds, each on its own."""
