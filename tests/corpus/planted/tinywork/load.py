from tinywork.core import greet


def work():
    return greet("you")
