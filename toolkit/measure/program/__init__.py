"""A module with a function `measure(trial)` measured in a process of a build: an experiment's, or a user's workload."""
