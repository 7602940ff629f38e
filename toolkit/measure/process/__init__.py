"""What every measured process is told, does and leaves, whatever it measures."""
