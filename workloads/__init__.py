"""The workloads: one definition of each, as plain functions on plain data."""
