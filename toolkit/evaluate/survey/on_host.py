"""Ask about packages on a host of a fleet, for somebody elsewhere who may end that.

Workers call these functions; what they take and return is text and plain values of gilscope's own classes.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.survey.asking import ask
from gilscope.toolkit.processes.supervised import TERMINATE_SECONDS

if TYPE_CHECKING:
    from gilscope.toolkit.evaluate.survey.answer import Answer
    from gilscope.toolkit.evaluate.survey.asking import Question
    from gilscope.toolkit.processes.supervised import Supervised

_LOCK = threading.Lock()
_RUNNING: dict[str, list[Supervised]] = {}   # by survey
_ENDED: set[str] = set()


def answer(survey: str, question: Question, package: str) -> Answer:
    """Return what `package` is on the builds of this host; see `asking.ask`.

    Raises:
        RuntimeError: the survey was ended.
    """
    mine: list[Supervised] = []

    def started(process: Supervised) -> None:
        mine.append(process)
        with _LOCK:
            _RUNNING.setdefault(survey, []).append(process)
            if survey in _ENDED:
                process.stop()

    try:
        return ask(package, question, started)
    except KeyboardInterrupt:   # it would end the worker
        raise RuntimeError("the survey was ended") from None
    finally:
        with _LOCK:
            for process in mine:
                _RUNNING[survey].remove(process)


def end(survey: str) -> None:
    """End what is being asked for a survey here; nothing is asked for it any more."""
    with _LOCK:
        _ENDED.add(survey)
        for process in _RUNNING.get(survey, ()):
            process.stop()
            later = threading.Timer(TERMINATE_SECONDS, process.stop)   # to see to it
            later.daemon = True
            later.start()
