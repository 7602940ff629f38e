"""Has pages rendered: by a process of its own, with a Python that has Jinja2.

That is gilscope's own where `gilscope[site]` is installed; else an environment is made on demand, as for figures.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from gilscope.toolkit import temporary
from gilscope.toolkit.builds.environment import build_environment, harness_path
from gilscope.toolkit.builds.find import find_builds
from gilscope.toolkit.errors import BuildError, ToolkitError
from gilscope.toolkit.processes.helper_process import HelperFailedError, HelperProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gilscope.toolkit.site.style import PageAssets

JINJA2 = "jinja2>=3.1"
LABEL = "pages"   # how progress names the environment; also its purpose
LAST_WORDS_SECONDS = 10.0   # for a process that failed to print why
EXTRA = "`pip install gilscope[site]` brings it"


class CannotRenderError(ToolkitError):
    """Pages cannot be had here; the message says why."""

    exit_code = 3


def rendering_python(say: Callable[[str], None]) -> Path:
    """Return a Python that has Jinja2.

    Raises:
        CannotRenderError: None can be had.
    """
    if importlib.util.find_spec("jinja2") is not None:
        return Path(sys.executable)
    build = replace(find_builds([f"{LABEL}={sys.executable}"]).builds[0], label=LABEL)
    try:
        return build_environment(build, [JINJA2], purpose=LABEL, on_progress=say).python
    except BuildError as error:
        raise CannotRenderError(f"no pages without Jinja2: {error}; {EXTRA}") from error


class PageRenderer:
    """Renders pages while it is entered; leaving ends the process.

    Args:
        python: What `rendering_python` returned.
        look: The style sheet and the script.
        linked: True if both are files beside the pages; False if each page contains them.
    """

    def __init__(self, python: Path, look: PageAssets, *, linked: bool = False) -> None:
        self._python, self._look, self._linked = python, look, linked

    def __enter__(self) -> Self:
        """Start the process."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        environment |= {"PYTHONPATH": str(harness_path()), "PYTHONUTF8": "1"}
        self._errors: IO[str] = tempfile.TemporaryFile("w+", prefix=temporary.prefix())
        try:
            # -P: what lies in the current folder is not what is imported.
            self._process = HelperProcess([self._python, "-P", "-m", "gilscope.toolkit.site.page"], env=environment,
                                          stderr=self._errors)
        except OSError as error:
            raise CannotRenderError(f"no pages: {error}") from error
        look = {"style": self._look.style, "script": self._look.script,
                "linked": list(self._look.files) if self._linked else None}
        try:
            self._process.send(look)
        except HelperFailedError:
            raise self._failed() from None
        return self

    def __exit__(self, *_: object) -> None:
        """End the process."""
        self._process.end()
        self._errors.close()

    def page(self, template: str, values: Mapping[str, Any]) -> str:
        """Return the page that a template makes of plain values.

        Args:
            template: A file of `templates`.
            values: What JSON can say; every text is escaped where it stands.

        Raises:
            CannotRenderError: The process failed.
        """
        try:
            return str(self._process.ask(template=template, values=values))
        except HelperFailedError:
            raise self._failed() from None

    def _failed(self) -> CannotRenderError:
        code = self._process.end(LAST_WORDS_SECONDS)
        self._errors.seek(0)
        lines = self._errors.read().strip().splitlines() or [f"exit code {code}"]
        return CannotRenderError(f"no pages: the process that renders them failed: {lines[-1]}")
