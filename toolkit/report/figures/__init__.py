"""What a figure shows, as plain values, and how it is drawn."""
