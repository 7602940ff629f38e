"""How many rounds and values to take."""
