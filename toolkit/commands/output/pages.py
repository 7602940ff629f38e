"""`--html` of commands with a report: one file, beside the printed text."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.commands.streams import print_stderr
from gilscope.toolkit.errors import ToolkitError, cannot_write

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def today() -> str:
    """Return the date as pages show it, the same for readers everywhere: "2026-11-24"."""
    return datetime.now(UTC).date().isoformat()


class HtmlFile:
    """The page of --html."""

    def __init__(self, name: str, say: Callable[[str], None], made: Mapping[str, str] | None = None) -> None:
        """Set how the page is made.

        Args:
            name: The file.
            say: Called when the file is written.
            made: How the page is made, for its foot; see `page_values`.
        """
        self._name, self._say, self._made = name, say, made

    @classmethod
    def requested(cls, args: Any) -> HtmlFile | None:
        """Return the page that --html asks for, or None.

        Args:
            args: The options of `add_page`, with the `words` of the command line.

        Raises:
            ToolkitError: --by is given without --html.
        """
        if not args.html:
            if args.by:
                raise ToolkitError("--by says who publishes the page of --html: add --html FILE")
            return None
        made = {"command": shlex.join(["gilscope", *args.words]), "date": today(), "by": args.by}
        return cls(args.html, print_stderr, made)

    @property
    def made(self) -> dict[str, str]:
        """How the page is made; see `page_values`."""
        return dict(self._made or {})

    def write(self, template: str, values: Mapping[str, Any], **more: Any) -> None:
        """Write the page; the arguments are those of `single_page`.

        Raises:
            ToolkitError: It would name a person or a machine, or cannot be written.
        """
        from gilscope.toolkit.site.single.page import single_page  # noqa: PLC0415 - Jinja2 takes long to import

        text = single_page(self._name, template, values, made=self._made, **more)
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
