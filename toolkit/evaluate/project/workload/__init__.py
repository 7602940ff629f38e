"""Measure the user's workload in rounds, and draw conclusions for each build."""
