"""The pages of single reports, of made-up findings: as text, made without a process of their own."""

from dataclasses import replace

from gilscope.toolkit.commands.gil.report import document as gil_document
from gilscope.toolkit.evaluate.views import doctor, screen
from gilscope.toolkit.evaluate.views.json_document import plain as evaluation_values
from gilscope.toolkit.gil.as_json import values
from gilscope.toolkit.gil.diagnosis import diagnose
from gilscope.toolkit.gil.recorder import Recording
from gilscope.toolkit.race.report import json_
from gilscope.toolkit.site.page import TemplatePages
from gilscope.toolkit.site.single.page import public
from gilscope.toolkit.site.single.races import race_values
from gilscope.toolkit.site.single.verdicts import build_cards, conclusion_cards, verdict_values
from gilscope.toolkit.site.single.waits import wait_values
from gilscope.toolkit.site.style import load_assets
from tests.evaluate.made_up import evaluation, finding, report
from tests.gil.recorded import make_process, make_thread
from tests.race.fakes.report import ROOT, make_report

SOURCE = """\
class Account:
    def __init__(self, owner):
        self.owner = owner
        self.balance = 0
        self.lock = threading.Lock()

    def withdraw(self, amount):
        with self.lock:
            self.balance -= amount

    def deposit(self, amount):
        if amount < 0:
            raise ValueError(amount)
        self.balance += amount
        return self.balance
"""
RENDERED = TemplatePages(load_assets())


def render(template, values, root=ROOT):
    return RENDERED.render(template, public(values, root))


def source_lines(path):
    """Return the lines of `bank.py` alone."""
    return SOURCE.splitlines(keepends=True) if path.endswith("bank.py") else []


def race_page(found=None, lines=source_lines):
    return render("race.html", race_values(json_.plain(found or make_report()), lines))


def gil_page(processes=(), **changes):
    if not processes:   # two that take turns, one that is parked, and one that is there for half of the time
        usual = make_process()
        processes = (replace(usual, threads=(*usual.threads, make_thread(3, [], end=0.5, cpu=0.25))),)
    recording = Recording(processes=tuple(processes), **{"ended": 0, "wall": 1.0, "cpu": 1.5, **changes})
    found = diagnose(["spin.py", "two words"], recording)
    return render("waits.html", wait_values(values(found), gil_document(found, places=10)))


def evaluate_page():
    found = evaluation()
    values = verdict_values(screen.document(found), conclusion_cards(evaluation_values(found)))
    return render("verdict.html", values, str(found.project.root))


def doctor_page():
    reports = [report(finding())]
    return render("verdict.html", verdict_values(doctor.document(reports), build_cards(doctor.plain(reports))))


PAGES = {"race": race_page, "gil": gil_page, "evaluate": evaluate_page, "doctor": doctor_page}
