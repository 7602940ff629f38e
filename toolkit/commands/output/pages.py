"""`--html` of commands with a report: one file, beside the printed text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.errors import ToolkitError, cannot_write
from gilscope.toolkit.site.single.page import SinglePage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class HtmlFile:
    """The page of --html.  It is made before anything takes long, so that its renderer is installed or missing then."""

    def __init__(self, name: str, say: Callable[[str], None]) -> None:
        """Start the renderer of pages.

        Args:
            name: The file.
            say: Called with each step that takes a while, and when the file is written.
        """
        self._name, self._say = name, say
        self._page = SinglePage(say)

    def write(self, template: str, values: Mapping[str, Any], **more: Any) -> None:
        """Write the page; the arguments are those of `SinglePage.text`.

        Raises:
            ToolkitError: It would name a person or a machine, or cannot be written.
        """
        text = self._page.text(self._name, template, values, **more)
        try:
            Path(self._name).write_text(text, encoding="utf-8")
        except OSError as error:
            raise cannot_write(self._name, error) from error
        self._say(f"gilscope: made {self._name}")

    def saved(self, template: str, values: Mapping[str, Any], **more: Any) -> int:
        """Write the page after a program has run, whose exit code and findings have priority over a missing page.

        Returns:
            0, or the exit code after printing why there is no page.
        """
        try:
            self.write(template, values, **more)
        except ToolkitError as error:
            self._say(f"gilscope: {error}")
            return error.exit_code
        return 0
