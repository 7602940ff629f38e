"""Runs of several hosts as one report, with the host as an axis.  `stats.hosts` has what they say together."""
