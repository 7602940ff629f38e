"""Runs of several hosts as one report, with the hosts side by side."""
