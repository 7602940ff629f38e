"""Plugin registry, filled while plugins are imported."""

plugins = {}
ranks = {}
next_rank = 1


def announce(cls):
    global next_rank
    plugin = cls()
    rank = next_rank
    next_rank = rank + 1
    plugins[cls.extension] = plugin
    ranks[cls.extension] = rank
