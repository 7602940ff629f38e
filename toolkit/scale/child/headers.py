"""The C extension that reads object headers, in headers.c beside this file."""

from __future__ import annotations

from gilscope.toolkit.builds.extension import CExtension

HEADERS = CExtension("gilscope.toolkit.scale.child._headers", __file__, "headers.c", "scale-headers")
