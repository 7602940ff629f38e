"""Views over an evaluation and over package reports: documents for people, values for programs."""
