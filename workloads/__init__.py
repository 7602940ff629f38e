"""What is run: one definition of each workload, plain functions on plain data."""
