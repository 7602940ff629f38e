"""Runs into rows, columns and baselines.  Everything here is derived, and can be made again from a stored run."""
