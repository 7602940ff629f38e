"""Find, scan and build the extension modules of a project."""
