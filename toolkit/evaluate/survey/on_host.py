"""Ask about packages on a host of a fleet, for somebody elsewhere who may end that.

Workers call these functions; what they take and return is text and plain values of gilscope's own classes.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.survey.asking import ask
from gilscope.toolkit.processes.supervised import TERMINATE_SECONDS

if TYPE_CHECKING:
    from gilscope.toolkit.evaluate.survey.answer import Answer
    from gilscope.toolkit.evaluate.survey.asking import Question
    from gilscope.toolkit.processes.supervised import Supervised

_LOCK = threading.Lock()
_RUNNING: list[tuple[str, Supervised]] = []    # with the survey
_ENDED: deque[str] = deque(maxlen=16)          # the last ones: a question of theirs may come after the word to end


def answer(survey: str, question: Question, package: str) -> Answer:
    """Return what `package` is on the builds of this host; see `asking.ask`.

    Raises:
        RuntimeError: the survey was ended.
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
    except KeyboardInterrupt:   # it would end the worker
        raise RuntimeError("the survey was ended") from None
    finally:
        with _LOCK:
            for each in mine:
                _RUNNING.remove(each)


def end(survey: str) -> None:
    """End what is being asked for a survey here; nothing is asked for it any more."""
    with _LOCK:
        _ENDED.append(survey)
        for process in (process for asked_by, process in _RUNNING if asked_by == survey):
            process.stop()
            later = threading.Timer(TERMINATE_SECONDS, process.stop)   # to see to it
            later.daemon = True
            later.start()
