"""Examine packages on a host of a fleet, for a survey that runs elsewhere and may end.

Workers call these functions; arguments and results are text and plain values.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.survey.asking import ask
from gilscope.toolkit.processes.supervised import TERMINATE_SECONDS

if TYPE_CHECKING:
    from gilscope.toolkit.evaluate.survey.answer import PackageAnswer
    from gilscope.toolkit.evaluate.survey.asking import SurveyQuestion
    from gilscope.toolkit.processes.supervised import Supervised

_LOCK = threading.Lock()
_RUNNING: list[tuple[str, Supervised]] = []    # identifier of the survey, and process
_ENDED: deque[str] = deque(maxlen=16)          # the latest ended surveys, as requests may arrive after the end


def answer(survey: str, question: SurveyQuestion, package: str) -> PackageAnswer:
    """Return the answer for `package` on the builds of this host; see `asking.ask`.

    Raises:
        RuntimeError: The survey was ended.
    """
    mine: list[tuple[str, Supervised]] = []

    def started(process: Supervised) -> None:
        with _LOCK:
            mine.append((survey, process))
            _RUNNING.extend(mine)
            if survey in _ENDED:
                process.stop()

    try:
        return ask(package, question, started)
    except KeyboardInterrupt:   # KeyboardInterrupt would end the worker
        raise RuntimeError("the survey was ended") from None
    finally:
        with _LOCK:
            for each in mine:
                _RUNNING.remove(each)


def end(survey: str) -> None:
    """End the processes of a survey on this host, and refuse further requests of it."""
    with _LOCK:
        _ENDED.append(survey)
        for process in (process for asked_by, process in _RUNNING if asked_by == survey):
            process.stop()
            later = threading.Timer(TERMINATE_SECONDS, process.stop)   # if it ignores the first signal
            later.daemon = True
            later.start()
