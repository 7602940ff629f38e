"""What `gilscope race` says after the program's end: the report in the forms that were asked for."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.errors import ToolkitError
from toolkit.race.report import formats_github, formats_json, formats_sarif, load, text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.commands.race import Options
    from toolkit.race.suppress import Suppression


def tell(args: Options, spool: str, ended: int, suppressions: Sequence[Suppression]) -> bool:
    """Write the report; return whether there is a race that is not suppressed."""
    report = load(spool, suppressions)
    if ended < 0 and -ended != signal.SIGINT:   # whoever presses Ctrl-C knows it
        _say(f"gilscope: the program was ended by {signal.Signals(-ended).name}")
    if args.json == "-":
        _say(formats_json.render(report))
    elif shown := text.render(report, color=_wants_color(args), notes=args.notes):
        _say(shown)
    if args.json not in {None, "-"}:
        _save(args.json, formats_json.render(report))
    if args.sarif:
        _save(args.sarif, formats_sarif.render(report))
    if args.github:
        _say(formats_github.render(report))
    return bool(report.races)


def _say(words: str) -> None:
    print(words.rstrip("\n"), file=sys.stderr)


def _save(path: str, words: str) -> None:
    try:
        Path(path).write_text(words, encoding="utf-8")
    except OSError as error:
        raise ToolkitError(f"cannot write {path}: {error.strerror}") from None


def _wants_color(args: Options) -> bool:
    return not args.no_color and not os.environ.get("NO_COLOR") and sys.stderr.isatty()
