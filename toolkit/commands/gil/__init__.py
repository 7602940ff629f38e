"""`gilscope gil`: record a program and report the waits of its threads."""
