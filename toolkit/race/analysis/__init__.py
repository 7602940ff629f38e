"""Static analysis of the user's Python, shared by the rewriter, the classification of conflicts, and `evaluate`."""
