"""The checked process in a confirming run: rewritten code with ops that pause, and nothing else of a session."""

from __future__ import annotations

from gilscope.toolkit.race.confirm.pausing.core import PausingCore
from gilscope.toolkit.race.confirm.plan import ANSWERS
from gilscope.toolkit.race.loading import hook
from gilscope.toolkit.race.spool import append
from gilscope.toolkit.race.sync.patch_on_import import Later

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType
    from typing import Any

    from gilscope.toolkit.race.confirm.plan import Plan

MOST_ANSWERS = 10_000  # of one run: a loop that loses every update must not fill the disk


class Confirmation:
    """Stands where a `Session` stands in a checking run."""

    def __init__(self, spool: str, plans: Sequence[Plan], attempt: int, include: Sequence[str]) -> None:
        self._file = spool + "/" + ANSWERS
        self._left = MOST_ANSWERS
        self._include = include
        self.core = PausingCore(plans, attempt, self._tell)

    def start(self) -> None:
        """Rewrite the program from now on, and the test modules of a pytest that it may be."""
        self._is_project = hook.project_filter(include=self._include)
        hook.install(self.core, self._is_project)  # type: ignore[arg-type]  # what hook needs
        Later({"_pytest.assertion.rewrite": self._rewrite_tests}).start()

    def compile(self, source: bytes, path: str) -> CodeType:
        """Return the entry script's code, rewritten."""
        return hook.code_for_script(path, source, self.core)  # type: ignore[arg-type]  # likewise

    def _rewrite_tests(self, module: Any) -> None:
        from gilscope.toolkit.race.loading import pytest_hook
        pytest_hook.install(module, self.core, self._is_project)  # type: ignore[arg-type]  # likewise

    def _tell(self, ident: str, times: int) -> None:
        if self._left > 0:
            self._left -= 1
            try:
                append(self._file, f"{ident} {times}\n".encode())
            except OSError:
                return   # the program must go on
