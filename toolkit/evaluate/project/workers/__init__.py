"""What one more thread, interpreter or process takes."""
