"""The parts of gilscope; `gilscope/__init__.py` says which names of them are for users.

PYTEST_DONT_REWRITE: a program checked by `gilscope race` may be pytest, which would warn that this is imported already.
"""
