"""gilscope race: a program of the user's checked for data races."""
