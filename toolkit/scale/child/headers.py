"""The C extension that reads object headers; see `headers.c`."""

from __future__ import annotations

from gilscope.toolkit.builds.extension import CExtension

HEADERS = CExtension("gilscope.toolkit.scale.child._headers", __file__, "headers.c", "scale-headers")
