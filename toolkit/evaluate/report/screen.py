"""An evaluation on one screen: a line per target, then what stands behind each word of it."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.evaluation import Word
from gilscope.toolkit.evaluate.packages.judge.modules import gil_users
from gilscope.toolkit.evaluate.packages.judge.status import Status
from gilscope.toolkit.evaluate.project.machine_calibration import MOST_QUEUED
from gilscope.toolkit.evaluate.report import first, own_extensions, worker_cost
from gilscope.toolkit.evaluate.report import forced as forced_text
from gilscope.toolkit.evaluate.report.doctor import way_to
from gilscope.toolkit.evaluate.report.evaluation_table import NOT_QUIET, table
from gilscope.toolkit.evaluate.sections import Missing
from gilscope.toolkit.evaluate.verdict.costs_and_gains import may_tell_speed
from gilscope.toolkit.evaluate.verdict.next_steps import crowds
from gilscope.toolkit.evaluate.verdict.unknowns import as_well
from gilscope.toolkit.report.document import Document, Heading, Lines
from gilscope.toolkit.report.wording import ratio_number, ratio_text
from gilscope.toolkit.units import counted, few, format_minutes, format_seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gilscope.toolkit.evaluate.evaluation import BuildEvaluation, Conclusion, Evaluation
    from gilscope.toolkit.evaluate.packages.doctor import BuildReport, Finding
    from gilscope.toolkit.evaluate.sections import Contention, Cost, Development, Gain, MachineFacts, Place, RaceLook
    from gilscope.toolkit.report.document import Section

UNEVEN = 1.6       # times an even share of the CPU time, from which on it is worth a word
COULD_NOT = 3      # the exit code of what could not be finished
MOST_NAMED = 4     # of anything in one line; --explain and --json have all


def document(found: Evaluation) -> Document:
    """Return the report of an evaluation."""
    sections: list[Section] = [
        Heading(f"evaluate: {found.project.name}", 1),
        *_titled(first.TITLE, first.lines(found.answer) if found.answer else ()),
        Lines("", tuple(_about(found))),
        table(found),
        *_titled("Why", _why(found.conclusions)),
        *_titled("What turns the GIL on", _merged((each.build.label, line) for each in found.builds
                                                  for line in _culprits(each))),
        *_titled(own_extensions.TITLE, own_extensions.lines(found)),
        *_titled("In the lock (metadata only, not a verdict)",
                 _merged((each.build.label, line) for each in found.builds for line in _offers(each))),
        *_titled("Gain", (line for each in found.builds for line in _gain(each, found.machine))),
        *_titled(forced_text.TITLE, forced_text.lines(found.builds)),
        *_titled("Where threads wait for each other",
                 (line for each in found.builds for line in _contention(each, found.machine))),
        *_titled("What one more worker takes", worker_cost.lines(found.interpreters)),
        *_titled("Tests left out", _merged((each.build.label, line) for each in found.builds
                                           for line in _left_out(each))),
        *_titled("Races", _races(found)),
        *_titled("No part of the verdict", _development(found.development)),
        *_titled("Machine", _machine(found.machine)),
        *_titled("Not looked at", _unexercised(found.conclusions)),
        *_titled("Next", (f"{number}. {step}" for number, step in enumerate(found.next_steps, 1))),
    ]
    return Document(tuple(sections))


def _titled(title: str, lines: Iterable[str]) -> list[Section]:
    items = tuple(dict.fromkeys(lines))
    return [Lines(title, items)] if items else []


def _merged(told: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield each text once, behind the names of all that it is about."""
    names: dict[str, list[str]] = {}
    for name, text in told:
        names.setdefault(text, []).append(name)
    for text, about in names.items():
        yield f"{', '.join(dict.fromkeys(about))}: {text}"


def _about(found: Evaluation) -> Iterator[str]:
    project = found.project
    lock = f"versions of {project.lock.name}" if project.lock else "versions of today"
    count = counted(len(project.requirements), "requirement")
    none = "no requirements" if project.told else "requirements not known"
    needs = f"{count}, {lock}" if project.requirements else none
    yield f"{needs}; tests: {' '.join(project.tests or ('none',))}; took {format_minutes(found.seconds)}"
    yield f"found: {'; '.join(project.found)}"
    if found.kept and found.kept_since is not None:
        at = time.strftime("%Y-%m-%d %H:%M", time.localtime(found.kept_since))
        yield (f"as measured before, since {at} at the earliest, as nothing has changed: {'; '.join(found.kept)} "
               "(--fresh measures anew)")


def _left_out(found: BuildEvaluation) -> Iterator[str]:
    if not isinstance(found.tests, Missing):
        yield from (f"{each.file} cannot be collected{as_well(found, each)}: {each.why}"
                    for each in found.tests.left_out)


def _why(conclusions: Sequence[Conclusion]) -> Iterator[str]:
    return _merged((each.target, f"{each.word} ({each.confidence} confidence): {_most(each.reasons)}")
                   for each in conclusions)


def _most(reasons: Sequence[str]) -> str:
    more = f"; and {len(reasons) - MOST_NAMED} more" if len(reasons) > MOST_NAMED else ""
    return f"{'; '.join(reasons[:MOST_NAMED])}{more}"


def _culprits(found: BuildEvaluation) -> Iterator[str]:
    """Yield of each package that turns the GIL on its files, the way from the user's first line, and the newest."""
    if isinstance(found.readiness, Missing):
        return
    places = {} if isinstance(found.tests, Missing) else {place.what: place for place in found.tests.imports}
    for finding in found.readiness.findings:
        if finding.verdict.status is Status.GIL:
            flips = () if isinstance(found.tests, Missing) else found.tests.culprits
            yield f"{finding.name} {finding.version}: {_ways(found.readiness, finding, places, flips)}"


def _ways(report: BuildReport, finding: Finding, places: dict[str, Place], flips: Sequence[str]) -> str:
    users = gil_users(finding.seen)
    # The one that did it in the project's own tests says most, then one that they loaded.
    first, *others = sorted(users, key=lambda name: (name not in flips, name not in places))
    file = next((f" ({_untagged(extension.file)})" for extension in finding.seen.extensions
                 if extension.name == first), "")
    more = f" and {len(others)} more" if others else ""
    if place := places.get(first):
        steps = [f"{place.file}:{place.line}", *_packages(place.way, first)]
    else:
        steps = list(dict.fromkeys(step.module for step in way_to(report, first)))
    via = f"; through {' -> '.join(steps)}" if steps else ""
    return f"{first}{file}{more}, seen by {users[first]}{via}{_newest(report, finding)}"


def _packages(way: Sequence[str], module: str) -> list[str]:
    """Return the packages on a way of "file:line", each once, without the one that `module` is in; --json has lines."""
    inside = [step.partition("site-packages/")[2].partition(":")[0] for step in way]
    names = (step.partition("/")[0].removesuffix(".py") for step in inside if step)
    return [name for name in dict.fromkeys(names) if name != module.partition(".")[0]]


def _untagged(file: str) -> str:
    """Return the name of an extension file without its build's tag, so that what is alike on builds reads alike."""
    return re.sub(r"\.(?:cpython|abi3t?)\b.*", ".*.so", file.rpartition("/site-packages/")[2])


def _newest(report: BuildReport, finding: Finding) -> str:
    if finding.name not in report.newest:
        return ""
    version, status = report.newest[finding.name]
    if version in {"", finding.version}:
        return f"; {finding.version} is the newest"
    same = "has the same" if status is finding.verdict.status else f"is no way out ({status.value})"
    return f"; {version}, the newest, {'mends it' if status.mends else same}"


def _offers(found: BuildEvaluation) -> Iterator[str]:
    """Yield what the lock alone tells, where it is more than a real install has told."""
    if isinstance(found.offered, Missing) or not isinstance(found.readiness, Missing):
        return
    without = [each.name for each in found.offered if each.kind in {"sdist", "nothing"}]
    unknown = sum(each.kind == "not known" for each in found.offered)
    if unknown:
        yield f"{unknown} of {len(found.offered)} packages: the lock names no files"
    else:
        lacking = f"; none: {few(without, MOST_NAMED)}" if without else ""
        yield f"{len(found.offered) - len(without)} of {len(found.offered)} packages have a wheel{lacking}"


def _gain(found: BuildEvaluation, machine: MachineFacts | Missing) -> Iterator[str]:
    if isinstance(found.gain, Missing):
        return
    quiet = may_tell_speed(machine)
    parts = [*_gain_parts(found.gain, quiet=quiet), *(_otherwise(found) if quiet else ()),
             *(_import_parts(found.cost) if quiet else ())]
    yield f"{found.build.label}: {'; '.join(parts)}"


def _otherwise(found: BuildEvaluation) -> Iterator[str]:
    """Yield why what was measured lies outside what was predicted: what no prediction knows, and what was seen."""
    gain = found.gain
    if isinstance(gain, Missing) or isinstance(gain.predicted, Missing) or isinstance(gain.measured, Missing):
        return
    most = gain.measured[max(gain.measured)]   # what is predicted
    if most.lo > gain.predicted.hi:
        yield "more than predicted, which knows the waits for the GIL and not what it costs to hand it over"
    elif most.hi < gain.predicted.lo:
        yield ("less than predicted, which knows CPU time and not how threads wait for each other: "
               f"{_seen_waits(found.contention)}")


def _seen_waits(contention: Contention | Missing) -> str:
    if isinstance(contention, Missing) or (contention.parked is None and not contention.places):
        return "for what was not seen"
    place = contention.places[0] if contention.places else None
    at = f", most at {place.file}:{place.line}{f' ({place.what})' if place.what else ''}" if place else ""
    share = "" if contention.parked is None else f" {contention.parked * 100:.0f} % of their time"
    return f"they were parked{share} in another run{at}"


def _import_parts(cost: Cost | Missing) -> Iterator[str]:
    if not isinstance(cost, Missing) and cost.import_seconds is not None and cost.import_there is not None:
        yield (f"importing it takes {format_seconds(cost.import_seconds)}, {format_seconds(cost.import_there)} on "
               f"{cost.against}")


def _gain_parts(gain: Gain, *, quiet: bool) -> Iterator[str]:
    if gain.wait_share is not None:
        share = f"threads wait for the GIL {gain.wait_share * 100:.0f} % of their time on {gain.against}"
        if gain.queued is not None and gain.queued > MOST_QUEUED:
            yield f"{share}, which is not to be relied on: they waited {gain.queued * 100:.0f} % of theirs for a core"
        else:
            yield share
            if gain.ceiling is not None:
                yield f"so at most {ratio_number(gain.ceiling)}x"
    if gain.threads and gain.busiest and gain.threads * gain.busiest > UNEVEN:
        yield f"the busiest of {gain.threads + 1} threads takes {gain.busiest * 100:.0f} % of the CPU time"
    if gain.predicted == gain.measured:   # the same is in the way of both, whatever the machine does
        assert isinstance(gain.predicted, Missing)
        yield f"no prediction and nothing measured: {gain.predicted.reason}"
        return
    if not quiet:
        yield f"no prediction and nothing measured: {NOT_QUIET}"
        return
    if isinstance(gain.predicted, Missing):
        yield f"no prediction: {gain.predicted.reason}"
    else:
        yield (f"predicted {ratio_number(gain.predicted.value)}x "
               f"[{ratio_number(gain.predicted.lo)}, {ratio_number(gain.predicted.hi)}]")
    if isinstance(gain.measured, Missing):
        yield f"not measured: {gain.measured.reason}"
    else:
        yield "measured " + ", ".join(
            ratio_text(each) + (f" with {threads} threads" if threads else "")
            for threads, each in gain.measured.items())


def _contention(found: BuildEvaluation, machine: MachineFacts | Missing) -> Iterator[str]:
    if isinstance(found.contention, Missing):
        return
    parts = []
    if found.contention.inflation is not None and may_tell_speed(machine):
        parts.append(f"{found.contention.inflation:.2f} times the CPU time per operation")
    if found.contention.parked is not None:
        parts.append(f"parked {found.contention.parked * 100:.0f} % of their time")
    places = ", ".join(f"{place.file}:{place.line}{f' ({place.what})' if place.what else ''}"
                       for place in found.contention.places[:MOST_NAMED])
    if places:
        waited = ", while they waited for a core as well" if found.contention.parked is None else ""
        parts.append(f"most at {places}{waited}")
    parts += crowds(found.contention)
    if parts:
        yield f"{found.build.label}: {'; '.join(parts)}"


def _races(found: Evaluation) -> Iterator[str]:
    if isinstance(found.races, Missing):
        return
    if found.races.looks and not found.races.found:
        uncompiled = all(look.uncompiled for look in found.races.looks)
        c_code = ", and C code is not watched" if found.extensions.any and not uncompiled else ""
        yield f"none {' and '.join(map(_looked, found.races.looks))}; what they did not run is not judged{c_code}"
    for look in found.races.looks:
        if look.alone:
            count = len(look.alone)
            yield (f"{count} test{'s' * (count > 1)} cannot be run in several threads and ran in one: "
                   f"{few(look.alone, MOST_NAMED)}")
    for race in found.races.found:
        if race.violation:   # confirmed or not, it need not be among the reasons
            yield f"{race.variable}: atomicity violation ({race.kind}) at {race.where}, also there with the GIL"
        elif not race.confirmed:   # the others are among the reasons
            yield f"{race.variable}: {race.kind} at {race.where}, not confirmed by a second run"


def _development(found: Development | None) -> Iterator[str]:
    """Yield what nobody needs who uses the project: it decides only whether its tests can be run."""
    if found is None:
        return
    if found.packages:
        count = len(found.packages)
        what = "1 package is" if count == 1 else f"{count} packages are"
        yield f"{what} for development alone: {few(found.packages, MOST_NAMED)}"
    cannot = "cannot be run there: no such package could be installed"
    yield from _merged((label, f"tests that need {few(names, MOST_NAMED)} {cannot}")
                       for label, names in found.lacking.items())
    if found.extras:
        what = "extra" if len(found.extras) == 1 else "extras"
        yield f"{what} {few(found.extras, MOST_NAMED)}: --extra {found.extras[0]} judges the project with it"


def _looked(look: RaceLook) -> str:
    """Return what ran under the race checker, and where."""
    what = {
        "tests": "in the project's tests", "script": "in the script",
        "tests at once": f"in the project's tests, each in {look.workers} threads at once",
        "workload": f"in the workload, called {look.calls} times by {look.workers} threads"}[look.of]
    none = ", which start no threads" if look.threads is False else ""
    return f"{what} on {look.build}{none}{', as Python before it is compiled' * look.uncompiled}"


def _machine(machine: MachineFacts | Missing) -> Iterator[str]:
    if isinstance(machine, Missing):
        return
    able = f", which do {machine.effective:.2f} cores' work at once" if machine.effective is not None else ""
    waits = f", {machine.run_queue * 100:.0f} % of the time waited for one" if machine.run_queue is not None else ""
    told = "" if not machine.doubts else "; so no word on speed"
    yield f"{machine.cores} cores{able}{waits}; {machine.libc}{told}"
    if machine.inherited:
        yield machine.inherited


def _unexercised(conclusions: Sequence[Conclusion]) -> Iterator[str]:
    """Yield what was not looked at, what has the same reason together; the machine has its own lines."""
    parts: dict[str, list[str]] = {}
    for conclusion in conclusions:
        for each in conclusion.unexercised:
            name, _, reason = each.partition(": ")
            if name not in {"machine", "speed"}:
                parts.setdefault(reason, []).append(name)
    for reason, names in parts.items():
        yield ", ".join(dict.fromkeys(names)) + (f": {reason}" if reason else "")


def exit_code(found: Evaluation) -> int:
    """Return 1 when something stands in the way on every build without a GIL, 3 when nothing was installed, else 0."""
    if found.builds and all(isinstance(each.readiness, Missing) and each.readiness.failed for each in found.builds):
        return COULD_NOT
    labels = {each.build.label for each in found.builds}
    words = [each.word for each in found.conclusions if each.target in labels]
    return int(bool(words) and all(word is Word.BLOCKED for word in words))
