"""From what was found to words, reasons and next steps."""
