"""The plain values of a report as JSON, for scripts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.escaping import in_json

if TYPE_CHECKING:
    from collections.abc import Mapping


def render(values: Mapping[str, Any]) -> str:
    """Return the values as JSON, without a newline at its end.

    Raises:
        ValueError: A number is NaN or infinite, which JSON cannot say.
    """
    return in_json(json.dumps(values, indent=1, allow_nan=False))
