"""gilscope gil: a program of the user's recorded, and what its threads waited for."""
