"""The forms of a race report beside its text: `RACE_FORMATS` has an option of `gilscope race` for each.

A race report is no document of tables, so the forms in `report.DOCUMENT_FORMATS` cannot write it.

A form is a module with `render(report) -> str`, and a line here.  It is imported only when it is requested: a checked
program waits for what stands here, so there is no dataclass either.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gilscope.toolkit.race.report.model import RaceReport

FILE = "file"           # --NAME FILE: written beside the text
IN_PLACE = "in place"   # --NAME [FILE]: without FILE, printed on standard error in place of the text
_HERE = "gilscope.toolkit.race.report."


class RaceFormat:
    """A form of the report, and the option that asks for it.

    Attributes:
        name: The option without its dashes.
        kind: FILE or IN_PLACE.
        help: The option's text in --help.
        module: The module that renders it.
    """

    __slots__ = ("help", "kind", "module", "name")

    def __init__(self, name: str, kind: str, help: str, *, module: str) -> None:  # noqa: A002  argparse's word
        self.name = name
        self.kind = kind
        self.help = help
        self.module = module

    def render(self, report: RaceReport) -> str:
        """Return the report in this form."""
        from importlib import import_module

        return str(import_module(self.module).render(report))


RACE_FORMATS = (
    RaceFormat("json", IN_PLACE, "Also write the report as JSON to FILE; without FILE, write it to standard error in "
               "place of the text. Use it in scripts.", module=_HERE + "json_"),
    RaceFormat("sarif", FILE, "Also write the report as SARIF to FILE. Use it for code scanning services.",
               module=_HERE + "sarif"),
)
