"""A user's module that needs what this build does not have."""

import not_installed_anywhere.part  # noqa: F401


def plain(payload):
    return payload
