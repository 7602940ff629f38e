from tinywork.core import greet


def test_greet():
    assert greet("a") == "Hello, a"
