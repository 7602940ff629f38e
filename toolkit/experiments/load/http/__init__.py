"""Back ends and a load generator that speak HTTP, and what both go by."""
