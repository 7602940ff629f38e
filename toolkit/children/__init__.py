"""Processes of a build that are asked something: how they are started and read, and what they begin with."""
