"""Plain values for the template of each page of a site."""
