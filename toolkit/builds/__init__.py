"""The Pythons of this machine: finding, comparing and installing them, and the packages that each needs.

`uv`, `logged_command`, `compile_python` and `fetch_source` also run under Python 3.9: `toolkit/make_venv.py` uses them
on machines that have nothing newer.
"""
