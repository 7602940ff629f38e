"""What commands print: documents, files, figures, how to read on."""
