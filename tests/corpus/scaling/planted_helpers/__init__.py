"""Code that planted programs import, as from a library."""
