"""Every call makes a class, under the interpreter's lock on types."""


def f():
    for _ in range(3):
        type("Made", (), {})
