"""A constant of code that was compiled in this process: its references are counted."""

SOURCE = """
def f():
    total = 0
    for _ in range(100):
        total ^= 1000003
    return total
"""
space = {"__name__": __name__}
exec(compile(SOURCE, "generated", "exec"), space)
f = space["f"]
