from markupsafe import escape

from ._mix import mix


def cell(n):
    return escape(f"<{mix(n)}>")
