"""Requirements of a project: files, declarations and locks, and the wheels that a lock has for a build."""
