"""Examine the project itself on a build: its extension modules, tests, races, workload and workers."""
