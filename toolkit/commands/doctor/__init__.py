"""`gilscope doctor`: of some packages together, or of each in a list by itself."""
