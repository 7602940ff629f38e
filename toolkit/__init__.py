"""gilscope: what CPython's ways to run in parallel are worth, in numbers that can be believed.

PYTEST_DONT_REWRITE: a program checked by `gilscope race` may be pytest, which would warn that this is imported already.
"""

__version__ = "0.1.0"
