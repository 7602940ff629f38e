"""How work is run: one module per concurrency model."""
