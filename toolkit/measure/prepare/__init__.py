"""What must stand before the first round."""
