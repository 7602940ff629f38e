"""CPython's refusal to load an extension module in an interpreter with its own GIL.  Runs in measured processes."""

from __future__ import annotations

import re

# The only mark of this ImportError: CPython sets neither its name nor its path.
REFUSAL = re.compile(r"module (\S+) does not support loading in subinterpreters")
