"""Environments with the packages that are asked about: made, filled, kept within bounds."""
