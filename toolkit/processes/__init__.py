"""Processes of ours: how they are started so that none outlives us, and how what they answer is told from noise.

Runs under Python 3.9, as `builds` does, and partly in the builds that are measured: imports little.
"""
