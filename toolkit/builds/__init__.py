"""Which Pythons there are, how fair a pair of them is, how to get more, and the packages each needs.

`user_dirs`, `logged_command` and `source` also run under Python 3.9: `toolkit/make_venv.py` uses them where nothing
newer exists.
"""
