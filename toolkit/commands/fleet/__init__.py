"""`gilscope fleet`, and the use of a cluster and of runs of several hosts by other commands."""
