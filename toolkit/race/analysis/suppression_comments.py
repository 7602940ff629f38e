"""Read comments that accept a finding, `race: ok WHY`, and find the lines of a statement on which they count.

`gilscope race` and `gilscope evaluate` read them by the same rules.  A comment is one if it, or a further comment on
its line, begins with `race: ok`; spaces do not matter.  Callers decide whether a comment without a reason is enough.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

MARK = "race:"   # in every such comment


def suppression_reason(comment: str) -> str | None:
    """Return the reason that a `race: ok` comment gives, "" if it gives none, None for any other comment.

    Args:
        comment: One line of a comment of Python, C or Cython, with or without the characters that delimit it.
    """
    import re  # late: checked programs import this module, and few of their files have such comments

    found = re.search(r"(?:^|[#/*])\s*race:\s*ok\b[\s:,-]*(.*)", comment)
    if found is None:
        return None
    reason = found[1].rstrip().removesuffix("*/").rstrip()
    is_other_comment = reason.startswith(("#", "//", "/*"))
    return reason if any(map(str.isalnum, reason)) and not is_other_comment else ""


def suppression_reasons(source: bytes) -> dict[int, str]:
    """Return the reasons of the `race: ok` comments of Python source by line.

    Tokenizing is slow, so a source without the text `race:` is not tokenized.
    """
    if MARK.encode() not in source:
        return {}
    import io
    import tokenize

    reasons = {}
    try:
        for token in tokenize.tokenize(io.BytesIO(source).readline):
            if token.type == tokenize.COMMENT and (reason := suppression_reason(token.string)) is not None:
                reasons[token.start[0]] = reason
    except (tokenize.TokenError, SyntaxError):   # some valid sources cannot be tokenized: a form feed, a null byte
        return reasons
    return reasons


def lines_of_statement(statement: ast.stmt) -> range:
    """Return the lines of a statement on which a comment counts for all of it; of a compound one, those of its head."""
    first = statement.lineno
    last = statement.end_lineno or first
    if isinstance(statement, ast.Match):
        last = statement.cases[0].pattern.lineno - 1
    elif isinstance(body := getattr(statement, "body", None), list) and body:
        last = body[0].lineno - 1
    return range(first, max(first, last) + 1)


def reason_for_line(reasons: Mapping[int, str], line: int, statement: range) -> str | None:
    """Return the reason of the first comment that counts for a line, "" if it gives none; None without a comment.

    Args:
        reasons: The reasons by line.
        line: The line of the finding.
        statement: The lines of its statement; if the line is outside of them, only the line itself counts.
    """
    lines = statement if line in statement else (line,)
    return next((reasons[each] for each in lines if each in reasons), None)
