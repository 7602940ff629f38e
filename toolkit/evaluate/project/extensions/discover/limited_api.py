"""Where a build's settings ask for the limited API: no build without a GIL before 3.15 has one, nor loads abi3 modules.

Sources: PEP 703, PEP 803 (abi3t, 3.15); the settings of setuptools, meson-python, scikit-build-core, CMake and PyO3.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.evaluate.project.extensions.discover.files import Files

_SETTINGS = ("setup.py", "setup.cfg", "pyproject.toml", "meson.build", "CMakeLists.txt", "Cargo.toml")
_ASKS = re.compile(r"""py[-_]limited[-_]api|\bPy_LIMITED_API\b|\blimited_api\s*:|\bwheel\.py-api\b|^\s*py-api\s*=
                   |\bSTABLE_ABI\b|\bUSE_SABI\b|\babi3(?:-py\d+)?["']""", re.VERBOSE)


def limited_places(files: Files) -> Iterator[str]:
    """Yield "file:line" of each line that asks for it; comments do not."""
    for file in files.named(*_SETTINGS):
        for number, line in enumerate((files.text(file) or "").splitlines(), 1):
            if _ASKS.search(line.partition("#")[0]):
                yield f"{file}:{number}"
