"""The rounds: which cell is measured when."""
