"""Addresses that options name."""

from __future__ import annotations

import argparse
import re
from urllib.parse import quote, urlsplit

_HOST = re.compile(r"[\w-]+(?:\.[\w-]+)*\.?(?::\d{1,5})?")
_KEPT = "/%~!$&'*+,;=:@"   # of a path; a bracket or a blank would end a link in Markdown


def web_address(text: str) -> str:
    """Return the address of a folder on the web, quoted so that it may stand in Markdown.

    Raises:
        argparse.ArgumentTypeError: It is none.
    """
    try:
        parts = urlsplit(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no address: {error}") from None
    if parts.scheme not in {"http", "https"}:
        raise argparse.ArgumentTypeError(f"{text!r} does not begin with http:// or https://")
    if not _HOST.fullmatch(parts.netloc):
        raise argparse.ArgumentTypeError(f"{text!r} names no host, as https://me.github.io/results/ does")
    if parts.query or parts.fragment:
        raise argparse.ArgumentTypeError(f"{text!r} goes on after a '?' or '#': name the folder that the site is in")
    return f"{parts.scheme}://{parts.netloc}{quote(parts.path, safe=_KEPT)}"
