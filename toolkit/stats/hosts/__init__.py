"""One comparison on several hosts: what they have in common, and how far they differ."""
