"""CPython from its source: got from the distribution, built as a pair."""
