"""What was found, as documents for people and values for programs."""
