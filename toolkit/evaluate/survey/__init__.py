"""What each package of a list does on free-threaded builds, each asked about by itself."""
