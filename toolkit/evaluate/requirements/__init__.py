"""Which packages are asked for, and by whom: files, declarations and locks, and what a lock has for a build."""
