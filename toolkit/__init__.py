"""gilscope: what CPython's ways to run in parallel are worth, in numbers that can be believed."""

__version__ = "0.1.0"
