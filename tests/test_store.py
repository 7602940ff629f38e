"""results/<label>/: what is kept comes back, pyperf reads it, and damage is refused by name."""

import dataclasses
import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pyperf
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gilscope.toolkit.errors import BadFileError, LabelTakenError, SaveError, ToolkitError, UnknownNameError
from gilscope.toolkit.model import Cell, Evidence, Observation, Phase, Skip, SkipKind
from gilscope.toolkit.store import Store, find_label, label_path, labels, load_run
from tests.conformance.builds import ROOT
from tests.fakes import RunMaker, make_run
from tests.patience import PATIENCE


def details(observation):
    """Return what a measured process tells beside pyperf's values, as it comes out of JSON."""
    fields = dataclasses.asdict(observation) | {"metadata": {"gilscope_cores": 2}}
    return json.loads(json.dumps({name: value for name, value in fields.items() if name != "wall"}))


def add(store, cell, observation, folder):
    run = pyperf.Run(observation.wall, metadata={"name": cell.name, "loops": observation.loops}, collect_metadata=False)
    pyperf.Benchmark([run]).dump(str(folder / "values.json"), replace=True)
    return store.add(cell, folder / "values.json", details(observation))


def write(run, tmp_path, label="label", results=None):
    """Keep `run` as a run of its own would be kept; return its folder."""
    if not run.cells:   # made-up runs go without; what is kept says what was to be measured
        run = dataclasses.replace(run, cells=tuple(dict.fromkeys(
            each.cell for each in (*run.measurements, *run.failures))))
    store = Store.create(label, results or tmp_path / "results")
    for measurement in run.measurements:
        for observation in measurement.observations:
            add(store, measurement.cell, observation, tmp_path)
    store.save(run)
    store.close()
    return store.path


@pytest.fixture
def run():
    made = make_run(rounds=3)
    cells = tuple(each.cell for each in made.measurements)
    options = {"settings": {"seed": 1}, "paths": ["a", "b"], "nothing": None, "nested": [[1, 2.5], []]}
    return dataclasses.replace(made, label="label", cells=cells, options=options)


@pytest.mark.parametrize("changed", ["python_executable", "platform"])
def test_rounds_of_another_machine_are_refused_and_cost_nothing(changed, path, tmp_path):
    store, before = Store.reopen(path)
    cell = before.measurements[0].cell
    one = dataclasses.replace(before.measurements[0].observations[0], round=3)
    elsewhere = pyperf.Run(one.wall, metadata={"name": cell.name, "loops": one.loops, changed: "x"},
                           collect_metadata=False)
    pyperf.Benchmark([elsewhere]).dump(str(tmp_path / "values.json"), replace=True)
    with pytest.raises(ToolkitError, match=f"label cannot be continued here.*{changed}"):
        store.add(cell, tmp_path / "values.json", details(one))
    store.save(before)
    store.close()
    assert load_run(path) == before


def test_values_of_a_process_without_pyperf_come_back_with_the_machine(tmp_path):
    maker = RunMaker(rounds=2)
    cell = Cell(workload="scaling", runner="free-threaded", workers=2, build="3.14t")
    maker.measure(cell, [1e-7, 2e-7], calls=3)
    run = maker.run(("3.14t",), cells=(cell,), options={"experiment": "scaling"})
    store = Store.create("label", tmp_path / "results")
    for each in run.measurements[0].observations:
        store.add(cell, each.wall, details(each))
    store.save(run)
    store.close()
    assert load_run(store.path).measurements == run.measurements
    (benchmark,) = pyperf.BenchmarkSuite.load(str(store.path / "3.14t.json")).get_benchmarks()
    assert benchmark.get_values() == (*[1e-7] * 3, *[2e-7] * 3)
    assert benchmark.get_metadata()["platform"]
    assert "load_avg_1min" not in benchmark.get_metadata()     # of the moment, and of this process


def test_impossible_values_of_a_process_without_pyperf_are_refused(tmp_path):
    cell = Cell(workload="scaling", runner="free-threaded", workers=2, build="3.14t")
    maker = RunMaker(rounds=1)
    maker.measure(cell, 1.0)
    store = Store.create("label", tmp_path / "results")
    with pytest.raises(BadFileError, match="a measured value is impossible"):
        store.add(cell, (1e12,) * 3, details(maker.measurements[0].observations[0]))
    store.close()


@pytest.fixture
def path(run, tmp_path):
    return write(run, tmp_path)


def test_everything_comes_back(run, path):
    found = load_run(path)
    assert dataclasses.replace(found, measurements=()) == dataclasses.replace(run, measurements=())
    assert {each.cell: each.observations for each in found.measurements} == {
        each.cell: each.observations for each in run.measurements}


seconds = st.floats(1e-9, 1e6)
names = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=20)


@given(cpu_seconds=st.none() | st.just(0.0) | seconds, observation=st.builds(
    Observation, round=st.just(0), wall=st.lists(seconds, min_size=1, max_size=4).map(tuple), cpu=st.just(()),
    loops=st.integers(1, 2**32), starved=st.booleans(),
    evidence=st.builds(Evidence, others_cores=st.none() | st.floats(0, 512), steal=st.none() | st.floats(0, 1),
                       pressure=st.none() | st.floats(0, 1), load=st.none() | st.floats(0, 1e4)),
    retakes=st.integers(0, 5),
    metrics=st.dictionaries(st.sampled_from(["p50", "pss_bytes", "rss_bytes"]), st.integers(0, 2**50)).map(
        lambda found: tuple(sorted(found.items()))),
    gil_end=st.none() | st.booleans(), gil_culprit=st.none() | names,
    demand=st.none() | st.floats(0, 64), tasks=st.none() | st.integers(1, 10_000)))
@settings(max_examples=60, deadline=None)
def test_every_observation_comes_back(observation, cpu_seconds, tmp_path_factory):
    if cpu_seconds is not None:
        observation = dataclasses.replace(observation, cpu=(cpu_seconds,) * len(observation.wall))
    folder = tmp_path_factory.mktemp("any")
    cell = Cell(workload="mine:function", runner="serial", workers=1, build="3.14", task_seconds=0.001,
                phase=Phase.STARTUP)
    run = dataclasses.replace(make_run(rounds=1), measurements=(), cells=(cell,), options={"experiment": "any"})
    store = Store.create("label", folder)
    kept = add(store, cell, observation, folder)
    store.save(run)
    store.close()
    (measurement,) = load_run(store.path).measurements
    assert kept == observation
    assert (measurement.cell, measurement.observations) == (cell, (observation,))


@pytest.mark.parametrize("cell", [
    Cell(workload="primes", runner="threads", workers=2, build="3.14"),
    Cell(workload="pkg.mod:func", runner="processes-spawn", workers=16, build="3.14", phase=Phase.STARTUP, twin=True),
    Cell(workload="primes", runner="asyncio", workers=1, build="3.14", task_seconds=1e-05),
    Cell(workload="primes", runner="asyncio", workers=1, build="3.14", task_seconds=0.25, twin=True),
    Cell(workload="convoy", runner="threads", workers=0, build="3.14", twin=True,
         parameters=(("interval", "5ms"), ("client", "other core"))),
])
def test_cell_has_a_name_that_it_can_be_made_from(cell):
    assert Cell.parse(cell.name, "3.14") == cell


@pytest.mark.parametrize("name", [
    "", "primes", "primes/threads", "primes/runner=threads", "primes/runner=threads/workers=two/phase=steady",
    "primes/runner=threads/workers=2/phase=later", "primes/runner=threads/workers=2/phase=steady/colour",
    "/runner=threads/workers=2/phase=steady", "primes/runner=threads/workers=2/phase=steady/task=longs",
])
def test_other_names_are_no_cells(name):
    with pytest.raises(ValueError, match="is not the name of a gilscope cell"):
        Cell.parse(name, "3.14")


@pytest.mark.parametrize("command", [
    ["show"], ["show", "--quiet"], ["stats"], ["check"], ["metadata"], ["dump"], ["hist"], ["slowest"],
])
def test_pyperf_reads_the_suites(command, path):
    done = pyperf_command(*command, str(path / "3.14.json"))
    assert "primes/runner=" in done


def test_pyperf_compares_the_suites(path):
    assert "primes/runner=serial" in pyperf_command("compare_to", str(path / "3.13.json"), str(path / "3.14.json"))


def python(*arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, cwd=ROOT,
                          timeout=PATIENCE)


def pyperf_command(*arguments):
    done = python("-m", "pyperf", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_pyperf_shows_what_we_add(path):
    shown = pyperf_command("dump", "--verbose", str(path / "3.14t.json"))
    assert "gilscope_pss_bytes" in shown
    assert "gilscope_gil_end" in shown
    assert "gilscope_cores" in pyperf_command("metadata", str(path / "3.14t.json"))


def damage_header(change):
    def damage(path):
        header = json.loads((path / "run.json").read_text())
        change(header)
        (path / "run.json").write_text(json.dumps(header))
    return damage


def damage_suite(change):
    def damage(path):
        suite = json.loads((path / "3.14.json").read_text())
        change(suite)
        (path / "3.14.json").write_text(json.dumps(suite))
    return damage


def cut(name):
    def damage(path):
        text = (path / name).read_text()
        (path / name).write_text(text[:len(text) // 2])
    return damage


def put(name, text):
    return lambda path: (path / name).write_bytes(text)


def without_our_metadata(suite):
    for benchmark in suite["benchmarks"]:
        for run in benchmark["runs"]:
            run["metadata"] = {key: value for key, value in run["metadata"].items() if key != "gilscope_round"}
    suite["metadata"] = {key: value for key, value in suite["metadata"].items() if not key.startswith("gilscope_")}


def rename_first(suite):
    suite["benchmarks"][0].setdefault("metadata", {})["name"] = "my favourite"


def first_run(suite):
    return suite["benchmarks"][0]["runs"][0]


DAMAGES = {
    "run.json cut off": (cut("run.json"), "run.json is cut off or not JSON"),
    "run.json empty": (put("run.json", b""), "run.json is cut off or not JSON"),
    "run.json binary": (put("run.json", b"\x80\xff\x00"), "run.json is cut off or not JSON"),
    "run.json a list": (put("run.json", b"[1, 2]"), "run.json holds a list, not a run"),
    "run.json foreign": (put("run.json", b'{"a": 1}'), "run.json is not a gilscope run: its format is None"),
    "run.json gone": (lambda path: (path / "run.json").unlink(), "run.json is missing"),
    "run.json a folder": (lambda path: ((path / "run.json").unlink(), (path / "run.json").mkdir()),
                          "run.json cannot be read"),
    "later version": (damage_header(lambda header: header.update(version=2)),
                      "run.json has version 2, this gilscope reads 1"),
    "no builds": (damage_header(lambda header: header.pop("builds")), "run.json lacks what a gilscope run has"),
    "no label": (damage_header(lambda header: header.pop("label")), "run.json lacks what a gilscope run has"),
    "builds a word": (damage_header(lambda header: header.update(builds="3.14")),
                      "run.json lacks what a gilscope run has"),
    "machine none": (damage_header(lambda header: header.update(machine=None)),
                     "run.json lacks what a gilscope run has"),
    "skips none": (damage_header(lambda header: header.update(skips=[None])), "run.json lacks what a gilscope run has"),
    "unknown field": (damage_header(lambda header: header.update(colour="red")),
                      "run.json lacks what a gilscope run has"),
    "looks a word": (damage_header(lambda header: header.update(looks="many")), "looks is 'many'"),
    "looks without end": (damage_header(lambda header: header.update(looks=21)), "looks is 21"),
    "answered none": (damage_header(lambda header: header.update(answered=[None])), "run.json lacks what"),
    "unknown phase": (damage_header(lambda header: header["cells"][0].update(phase="later")), "run.json lacks what"),
    "failure without cell": (damage_header(lambda header: header["failures"][0].pop("cell")), "run.json lacks what"),
    "suite cut off": (cut("3.14.json"), "3.14.json is cut off or not a pyperf suite"),
    "suite empty": (put("3.14.json", b""), "3.14.json is cut off or not a pyperf suite"),
    "suite binary": (put("3.14.json", b"\x80\xff"), "3.14.json is cut off or not a pyperf suite"),
    "suite a list": (put("3.14.json", b"[]"), "3.14.json is cut off or not a pyperf suite"),
    "suite null": (put("3.14.json", b"null"), "3.14.json is cut off or not a pyperf suite"),
    "suite foreign": (put("3.14.json", b'{"a": 1}'), "3.14.json is cut off or not a pyperf suite"),
    "suite of nothing": (put("3.14.json", b'{"version": "1.0", "benchmarks": []}'),
                         "3.14.json is cut off or not a pyperf suite"),
    "suite later": (damage_suite(lambda suite: suite.update(version="9.0")),
                    "3.14.json is cut off or not a pyperf suite"),
    "suite gone": (lambda path: (path / "3.14.json").unlink(), "3.14.json is missing"),
    "suite of others": (damage_suite(without_our_metadata), "3.14.json: a run of .* lacks what gilscope wrote"),
    "benchmark renamed": (damage_suite(rename_first), "3.14.json: 'my favourite' is not the name of a gilscope cell"),
    "values edited": (damage_suite(lambda suite: suite["benchmarks"][0]["runs"][0].update(values=["fast"])),
                      "3.14.json"),
    "metadata empty": (damage_suite(lambda suite: first_run(suite)["metadata"].update(gilscope_cpu=" ")),
                       "metadata 'gilscope_cpu' is ' ', not text"),
    "loops none": (damage_suite(lambda suite: first_run(suite)["metadata"].update(loops=0)),
                   "loops is 0, not a whole number from 1 on"),
    "values negative": (damage_suite(lambda suite: suite["benchmarks"][0]["runs"][0].update(values=[-1.0])),
                        "3.14.json"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_file_is_refused_by_name(damage, path):
    change, words = DAMAGES[damage]
    change(path)
    for read in (load_run, Store.reopen):
        with pytest.raises(BadFileError, match=words) as refused:
            read(path)
        assert str(path) in str(refused.value)


def test_what_pyperf_refuses_is_no_run_to_continue(path):
    damage_suite(lambda suite: first_run(suite).update(warmups=[[0, 1.0]]))(path)
    assert load_run(path).measurements   # which needs no warm-ups
    with pytest.raises(BadFileError, match=r"3.14.json: a run of .* is none of pyperf's \(warmups must"):
        Store.reopen(path)


def test_run_from_before_there_were_looks_has_none(path):
    damage_header(lambda header: (header.pop("looks"), header.pop("answered")))(path)
    run = load_run(path)
    assert (run.looks, run.answered) == (0, ())


def test_damaged_run_can_be_opened_once_it_is_mended(path):
    text = (path / "run.json").read_text()
    (path / "run.json").write_text("")
    with pytest.raises(BadFileError):
        Store.reopen(path)
    (path / "run.json").write_text(text)
    store, _ = Store.reopen(path)   # the lock was let go
    store.close()


def test_build_of_which_every_cell_failed_needs_no_suite(run, tmp_path):
    failed = dataclasses.replace(run, measurements=(), cells=tuple(each.cell for each in run.failures), skips=())
    assert load_run(write(failed, tmp_path)).failures == failed.failures


def test_suite_of_another_interpreter_is_refused(path, tmp_path):
    own = tmp_path / "own.json"
    bench = pyperf.Benchmark([pyperf.Run([1.0], metadata={"name": "telco"}, collect_metadata=False)])
    bench.dump(str(own))
    own.rename(path / "3.14.json")
    with pytest.raises(BadFileError, match=r"3\.14\.json: 'telco' is not the name of a gilscope cell"):
        load_run(path)


def test_label_is_taken_once(run, path, tmp_path):
    with pytest.raises(LabelTakenError, match="choose another --label, or continue that run with --resume label"):
        Store.create("label", tmp_path / "results")
    assert load_run(path).label == "label"


@pytest.mark.parametrize("label", ["", ".", "..", "../up", "a/b", "/etc", "-x", "a b", "x" * 101, "a\n", "\0"])
def test_label_must_be_a_name(label, tmp_path):
    with pytest.raises(ToolkitError, match="cannot be a label"):
        label_path(label, tmp_path)


def test_run_is_found_by_label_or_folder(path, tmp_path):
    results = tmp_path / "results"
    assert find_label("label", results) == path
    assert find_label(str(path), results) == path
    assert labels(results) == ["label"]
    assert labels(tmp_path / "nowhere") == []
    with pytest.raises(UnknownNameError, match=r"no run called 'lable' under .*; existing labels: label"):
        find_label("lable", results)


def test_kinds_of_skips_come_back(run, tmp_path):
    skips = (Skip(cell=run.cells[0], reason="the budget ended before its first value", kind=SkipKind.OUT_OF_BUDGET),
             Skip(cell=run.cells[1], reason="the GIL is enabled in this build"))
    path = write(dataclasses.replace(run, measurements=(), rounds_done=0, skips=skips), tmp_path)
    assert load_run(path).skips == skips


def test_labels_come_oldest_first(run, tmp_path):
    for age, label in enumerate(["c", "a", "b"]):
        os.utime(write(run, tmp_path, label) / "run.json", (1e9 + age, 1e9 + age))
    assert labels(tmp_path / "results") == ["c", "a", "b"]


def test_run_is_written_by_one_process_at_a_time(path):
    store, _ = Store.reopen(path)
    code = f"from pathlib import Path; from gilscope.toolkit.store import Store; Store.reopen(Path({str(path)!r}))"
    done = python("-c", code)
    assert f"LabelTakenError: another gilscope is writing {path}" in done.stderr.replace("gilscope.toolkit.errors.", "")
    store.close()
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, timeout=PATIENCE)


def test_round_cut_short_is_not_taken_back(run, tmp_path):
    path = write(dataclasses.replace(run, rounds_done=2), tmp_path)   # of three
    store, so_far = Store.reopen(path)
    store.close()
    assert {one.round for each in so_far.measurements for one in each.observations} == {0, 1}


def test_second_take_of_a_round_replaces_the_first(run, tmp_path):
    store = Store.create("label", tmp_path)
    cell, first = run.measurements[0].cell, run.measurements[0].observations[0]
    second = dataclasses.replace(first, wall=(9.0,), cpu=(8.0,), retakes=1)
    for each in (first, second):
        add(store, cell, each, tmp_path)
    store.close()
    (measurement,) = store.measurements()
    assert measurement.observations == (second,)


def test_results_below_a_file_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    for results in (tmp_path / "file", tmp_path / "file" / "results"):
        with pytest.raises(ToolkitError, match="cannot write results to") as refused:
            Store.create("label", results)
        assert not isinstance(refused.value, LabelTakenError)


def test_folder_that_goes_away_is_made_again_with_all_values(run, path):
    store, so_far = Store.reopen(path)
    shutil.rmtree(path)
    store.save(so_far)
    with pytest.raises(LabelTakenError):
        Store.reopen(path)   # the new one is held, too
    store.close()
    assert load_run(path).measurements == so_far.measurements


def test_folder_that_cannot_be_made_again_is_said(run, path):
    store, so_far = Store.reopen(path)
    shutil.rmtree(path.parent)
    path.parent.write_text("")
    with pytest.raises(SaveError, match="the folder was deleted and cannot be created again"):
        store.save(so_far)
    store.close()


def test_full_disk_leaves_the_earlier_state_whole(run, tmp_path):
    code = textwrap.dedent(f"""
        import dataclasses, resource, signal
        from pathlib import Path
        from tests.test_store import *
        folder = Path({str(tmp_path)!r})
        run = dataclasses.replace(make_run(rounds=1), label="label")
        path = write(run, folder)
        store, so_far = Store.reopen(path)
        more = dataclasses.replace(make_run(rounds=30), cells=so_far.cells)
        for each in more.measurements:
            for observation in each.observations:
                add(store, each.cell, observation, folder)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        limit = 2 * (path / "3.14.json").stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        try:
            store.save(dataclasses.replace(more, rounds_done=30))
        except ToolkitError as error:
            print(error)
    """)
    done = python("-c", code)
    path = tmp_path / "results" / "label"
    assert f"cannot save {path}: File too large; everything saved before is intact" in done.stdout, done.stderr
    found = load_run(path)
    assert found.rounds_done == 1
    assert {one.round for each in found.measurements for one in each.observations} == {0}
    assert sorted(each.name for each in path.iterdir()) == [".lock", "3.13.json", "3.14.json", "3.14t.json", "run.json"]


def test_reader_beside_a_writer_sees_whole_files(path):
    code = textwrap.dedent(f"""
        import sys
        from pathlib import Path
        from gilscope.toolkit.store import Store
        store, run = Store.reopen(Path({str(path)!r}))
        print("ready", flush=True)
        while not sys.stdin.closed and Path({str(path / "go on")!r}).exists():
            store.save(run)
    """)
    (path / "go on").touch()
    writer = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)
    try:
        assert writer.stdout.readline() == b"ready\n"
        for _ in range(10):
            assert load_run(path).rounds_done == 3
    finally:
        (path / "go on").unlink()
        assert writer.communicate(timeout=PATIENCE) is not None
    assert writer.returncode == 0


def test_example_of_the_repository_can_be_read():
    for file in Path(ROOT, "results").glob("*/run.json"):
        assert load_run(file.parent).measurements
