"""Output of commands: reports, pages, figures, previews."""
