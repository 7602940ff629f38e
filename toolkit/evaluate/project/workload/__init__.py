"""The user's workload in rounds, and what the rounds say of a build."""
