"""What is needed to cite a run: shown where it is known, and said where it is not."""

import dataclasses

import pytest

from gilscope.toolkit.publish import without_traces
from gilscope.toolkit.report import as_json, terminal
from gilscope.toolkit.report.document import Banner, Document
from gilscope.toolkit.report.provenance import WITHOUT_PGO, run_sections, warnings
from gilscope.toolkit.store import load_run
from tests.conformance.builds import ROOT
from tests.fakes import make_run


def told(run):
    """Return that part of the report as one line, however wide; the golden files have the whole."""
    document = Document((*map(Banner, warnings(run)), *run_sections(run)))
    return " ".join(terminal.render(document, width=300).split())


def built(**changes):
    run = make_run()
    return dataclasses.replace(run, builds=tuple(dataclasses.replace(build, **changes) for build in run.builds))


def machine(**changes):
    run = make_run()
    return dataclasses.replace(run, machine=dataclasses.replace(run.machine, **changes))


def processes(*changes):
    """Return the run with these changes of its observations, one after the other."""
    run = make_run()
    return dataclasses.replace(run, measurements=tuple(
        dataclasses.replace(each, observations=tuple(
            dataclasses.replace(observation, **changes[number % len(changes)])
            for number, observation in enumerate(each.observations)))
        for each in run.measurements))


def evidence(**changes):
    return {"evidence": dataclasses.replace(make_run().measurements[0].observations[0].evidence, **changes)}


@pytest.mark.parametrize(("run", "text"), [
    (built(revision="60403a5409ff"), "3.14: commit 60403a5409ff;"),
    (built(revision=""), "3.14: commit not known;"),
    (built(revision="sha256:0123456789abcdef"), "3.14: commit not known, source archive 0123456789abcdef;"),
    (built(pgo=True, lto=True), "-O3, PGO, LTO"),
    (built(lto=True), "-O3, no PGO, LTO"),
    (built(debug=True), "-O3, no PGO, no LTO, debug"),
    (built(jit="on"), "; JIT on;"),
    (built(jit="off"), "; JIT built in, but off;"),
    (built(tail_call=True), "; tail-calling interpreter; pymalloc"),
    (built(tail_call=False), "; no tail-calling interpreter; pymalloc"),
    (built(), "; tail-calling interpreter not known; pymalloc"),
    (machine(), "hypervisor not known; SMT not known; turbo not known; frequency governor not known; microcode not"),
    (machine(hypervisor="QEMU", smt=False, turbo=True, governor="performance", microcode="0x1"),
     "hypervisor QEMU; SMT off; turbo on; frequency governor performance; microcode 0x1"),
    (processes({}), "each process: 3 values of 1 loop; hash seed not known"),
    (processes({"wall": (1.0,) * 6, "loops": 2, "hash_seed": "random"}),
     "each process: 6 values of 2 loops; hash seed random"),
    (processes({"loops": 4, "hash_seed": "0"}, {"wall": (1.0,) * 8, "hash_seed": "random"}),
     "each process: 3 to 8 values of 1 to 4 loops; hash seed 0 and random"),
    (processes({"hash_seed": "random"}, {}), "hash seed not known"),   # of some
    (processes(evidence(steal=0.01, pressure=0.5), evidence(steal=0.02, pressure=None)),
     "steal 1.5 %, 2.0 %; CPU pressure 50.0 %, 50.0 %"),
    (processes(evidence(steal=None, pressure=None)), "steal not known; CPU pressure not known"),
])
def test_report_says_it(run, text):
    assert text in told(run)


def test_run_without_values_says_nothing_of_processes():
    run = dataclasses.replace(make_run(), measurements=())
    assert "each process" not in told(run)
    assert as_json.made(run)["processes"] == {
        "values": None, "loops": None, "hash_seeds": None, "steal": None, "pressure": None}


def test_warning_if_no_build_has_pgo():
    warned, fine = built(), built(pgo=True)
    one = dataclasses.replace(warned, builds=(dataclasses.replace(warned.builds[0], pgo=True), *warned.builds[1:]))
    assert [WITHOUT_PGO in told(run) for run in (warned, one, fine)] == [True, False, False]
    assert [WITHOUT_PGO in as_json.made(run)["notes"] for run in (warned, one, fine)] == [True, False, False]


def test_json_has_all_of_it():
    run = built(revision="60403a5409ff", tail_call=True)
    values = as_json.made(dataclasses.replace(run, machine=dataclasses.replace(run.machine, smt=True)))
    build = values["builds"][0]
    assert (build["revision"], build["tail_call"], build["allocator"]) == ("60403a5409ff", True, "pymalloc")
    assert (values["machine"]["smt"], values["machine"]["microcode"]) == (True, None)
    assert as_json.made(built())["builds"][0]["revision"] is None
    found = as_json.made(processes({"loops": 4, "hash_seed": "0"}, {"hash_seed": "random"}))["processes"]
    assert found["values"] == {"least": 3, "most": 3}
    assert found["loops"] == {"least": 1, "most": 4}
    assert found["hash_seeds"] == ["0", "random"]


def test_published_run_keeps_all_of_it():
    run = dataclasses.replace(built(revision="60403a5409ff", tail_call=True),
                              machine=machine(hypervisor="QEMU", microcode="0x1").machine)
    public = without_traces(run)
    assert (public.builds[0].revision, public.builds[0].tail_call) == ("60403a5409ff", True)
    assert dataclasses.replace(public.machine, hostname=run.machine.hostname) == run.machine


def test_run_of_an_earlier_gilscope_says_what_is_not_known():
    text = told(load_run(ROOT / "results" / "example"))
    for words in ("tail-calling interpreter not known", "hash seed not known", "microcode not known"):
        assert words in text
