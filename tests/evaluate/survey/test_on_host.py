"""Questions of a survey on a host: somebody elsewhere ends them, and nothing is remembered of a survey that is over."""

import sys
import threading

import pytest

from gilscope.toolkit.evaluate.survey import on_host
from gilscope.toolkit.evaluate.survey.answer import PackageAnswer
from gilscope.toolkit.evaluate.survey.asking import SurveyQuestion
from gilscope.toolkit.processes.supervised import Supervised
from tests.patience import PATIENCE

pytestmark = pytest.mark.newest

QUESTION = SurveyQuestion(builds=("3.14t",))


class Asking(threading.Thread):
    """Has a host asked about a package, by a process that ends when it is stopped."""

    def __init__(self, survey):
        super().__init__(daemon=True)
        self.survey, self.begun, self.came = survey, threading.Event(), None
        self.start()

    def run(self):
        try:
            self.came = on_host.answer(self.survey, QUESTION, self)
        except RuntimeError as error:
            self.came = str(error)


@pytest.fixture
def asking(monkeypatch):
    def ask(package, question, started):
        with Supervised([sys.executable, "-c", "import signal; signal.pause()"]) as process:
            started(process)
            package.begun.set()
            process.wait(PATIENCE)
        if process.stopped:
            raise KeyboardInterrupt
        return PackageAnswer(package="x")

    def begin(survey):
        made = Asking(survey)
        assert made.begun.wait(PATIENCE)
        return made

    monkeypatch.setattr(on_host, "ask", ask)
    return begin


def test_what_is_asked_for_a_survey_ends_with_it_and_nothing_else_does(asking):
    mine, others = asking("mine"), asking("others")
    on_host.end("mine")
    mine.join(PATIENCE)
    assert mine.came == "the survey was ended"
    assert [(survey, process.stopped) for survey, process in on_host._RUNNING] == [("others", False)]
    on_host.end("others")
    others.join(PATIENCE)
    assert on_host._RUNNING == []


def test_question_that_comes_after_the_end_is_ended_at_once(asking):
    on_host.end("over")
    late = asking("over")
    late.join(PATIENCE)
    assert late.came == "the survey was ended"


def test_surveys_that_are_over_are_forgotten():
    for number in range(1000):
        on_host.end(f"survey-{number}")
    assert len(on_host._ENDED) < 100
    assert on_host._ENDED[-1] == "survey-999"
