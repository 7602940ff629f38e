"""Statistics: numbers in, numbers out.  Knows nothing of cells, builds or files."""
