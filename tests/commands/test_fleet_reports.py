"""`gilscope report` and `compare` of runs of several hosts: a fleet's, and some that were copied together."""

import errno
import json
import os
import re
import shutil

import pytest

from gilscope.toolkit import cli
from gilscope.toolkit.commands.fleet import reports
from gilscope.toolkit.store import Fleet, FleetStore, Host, HostState, list_runs, load_run, read_fleet, transfer_rounds
from gilscope.toolkit.store.header import PENDING
from gilscope.toolkit.store.transfer_rounds import cut_block
from tests.fakes import RunMaker
from tests.report.hosts.made_up import LOST, cell, write_fleet
from tests.site.made import EXAMPLE
from tests.test_store import write

pytestmark = pytest.mark.newest


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Return a folder with two runs of each host, which tests take what they need from."""
    results = tmp_path_factory.mktemp("kept") / "results"
    results.mkdir()
    write_fleet(results, "night")
    write_fleet(results, "after", factor=0.9)
    return results


@pytest.fixture
def here(kept, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    return tmp_path / "results"


@pytest.fixture
def fleet(kept, here):
    """Return what makes a fleet's run of those of its hosts."""
    def make(label="night", names=("host-1", "host-2"), lost=()):
        store = FleetStore.create(label, here)
        for name in names:
            shutil.copytree(kept / ("after" if label == "after" else "night") / name, store.path / name)
        store.save(Fleet(hosts=(*(Host(name=name, state=HostState.FINISHED) for name in names), *lost)))
        store.close()
        return store.path

    return make


@pytest.fixture
def plain(kept, here):
    """Return what makes the run of one machine of that of a host."""
    def make(label="plain", host="host-1"):
        return shutil.copytree(kept / "night" / host, here / label)

    return make


def ran(capsys, *argv):
    code = cli.main([*argv])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_fleet_is_one_report_and_each_host_has_its_own(fleet, capsys):
    fleet(lost=(LOST,))
    code, out, _ = ran(capsys, "report", "night")
    assert code == 0
    assert "host-5: lost, the connection was closed before its first round" in out
    assert "is faster on host-1 and slower on host-2" in " ".join(out.split())
    code, out, _ = ran(capsys, "report", "night/host-2", "--full")
    assert code == 0
    assert "gilscope night/host-2\n" in out
    assert "(8 cores" in out


def test_fleet_of_one_host_is_an_ordinary_report(fleet, capsys):
    fleet(names=("host-1",))
    of_host = ran(capsys, "report", "night/host-1")[1]
    assert ran(capsys, "report", "night")[1] == of_host.replace("report night/host-1", "report night")


def test_damaged_host_costs_only_itself(fleet, capsys):
    path = fleet(names=("host-1", "host-2", "host-4"))
    (path / "host-2" / "3.14.json").write_text("{")
    code, out, err = ran(capsys, "report", "night")
    assert code == 2
    assert "host-2/3.14.json is cut off" in err
    assert "host-1  host-4" in out


def test_damaged_fleet_is_named(fleet, capsys):
    path = fleet()
    (path / "fleet.json").write_text("[]")
    code, out, err = ran(capsys, "report", "night")
    assert (code, out) == (2, "")
    assert "fleet.json holds a list" in err
    assert ran(capsys, "report")[1].count("fleet.json holds a list") == 1


def test_list_has_a_fleet_once_and_says_how_its_hosts_stand(here, fleet, plain, capsys):
    fleet(lost=(LOST,))
    plain()
    out = ran(capsys, "report")[1]
    (row,) = [line.split() for line in out.splitlines() if line.startswith("night")]
    assert " ".join(row[3:]) == "3.14, 3.14t 3 hosts, 1 lost primes"
    assert "gilscope run --resume night --fleet ADDRESS goes on with night." in out
    assert [each.label for each in list_runs(here)] == ["night", "plain"]
    listed = {each["label"]: each["hosts"] for each in json.loads(ran(capsys, "report", "--json", "-")[1])["runs"]}
    assert listed == {"night": {"finished": 2, "lost": 1}, "plain": None}


def test_fleet_that_has_just_begun_is_not_damaged(here, capsys):
    store = FleetStore.create("night", here)
    store.save(Fleet(hosts=(Host(name="host-1", state=HostState.RUNNING),)))
    assert list_runs(here) == []
    assert "none of its hosts has a round" in ran(capsys, "report", "night")[2]
    store.close()
    assert [each.problem for each in list_runs(here)] == ["no host has a round"]


@pytest.mark.parametrize("label", ["night", "night/host-1", "results/night/host-2"])
def test_rounds_of_a_fleet_do_not_go_on_without_it(label, fleet, capsys):
    fleet(names=("host-1", "host-2"))
    code, _, err = ran(capsys, "run", "--resume", label, "--rounds", "99")
    assert code == 2
    assert err == (f"gilscope: {label} was measured by a fleet and has to be continued there: "
                   "gilscope run --resume night --fleet ADDRESS\n")


def wait(*hosts):
    """Have all rounds of hosts wait to be put into files, as when their client was killed."""
    for path in hosts:
        block = cut_block(path)
        shutil.rmtree(path)
        (path / PENDING).mkdir(parents=True)
        (path / PENDING / "000000").write_bytes(block)
        (path / PENDING / ".part").write_bytes(block[:9])   # the next one


@pytest.mark.parametrize("words", [
    ("report", "night"), ("report", "night/host-1"), ("report", "results/night/host-1"),
    ("report", "one=results/night/host-1", "two=results/night/host-2"), ("compare", "night/host-1", "night/host-2"),
    ("site", "results", "--check"), ("site", "results/night/host-1", "--check"), ("report",)])
def test_rounds_that_wait_are_shown_by_whoever_reads_them(words, fleet, capsys):
    path = fleet()
    wait(path / "host-1", path / "host-2")
    code, out, err = ran(capsys, *words)
    assert (code, err) == (0, ""), out
    assert load_run(path / "host-1").measurements
    assert load_run(path / "host-1").label == "night/host-1"


def test_rounds_that_wait_and_cannot_be_read_cost_no_other_host(fleet, capsys):
    path = fleet()
    wait(path / "host-1")
    (path / "host-1" / PENDING / "000000").write_bytes(b"no block")
    code, _, err = ran(capsys, "report", "night/host-1")
    assert code == 2
    assert re.search(r"night/host-1/\.blocks/000000 cannot be read", err), err
    code, out, _ = ran(capsys, "report", "night")
    assert code == 0
    assert "1 host" in out
    code, _, err = ran(capsys, "site", "results", "--check")
    assert code == 2
    assert "night/host-1/run.json is missing" in err


def test_rounds_that_the_disk_had_no_room_for_are_shown_when_it_has(fleet, here, capsys, monkeypatch):
    path = fleet()
    wait(path / "host-1", path / "host-2")

    def full(file, text):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(transfer_rounds, "replace_file", full)
        code, _, err = ran(capsys, "report", "night")
        assert code == 3
        assert re.match(r"gilscope: cannot save \S+/night/host-1: No space left on device", err)
        assert ["No space left on device" in each.problem for each in list_runs(here)] == [True]
    assert [each.problem for each in list_runs(here)] == [""]
    code, out, _ = ran(capsys, "report", "night")
    assert code == 0
    assert "2 hosts" in out
    assert not list(path.glob(f"*/{PENDING}"))


def test_runs_that_were_copied_together_are_hosts(plain, capsys):
    first = plain("first")
    plain("second", "host-2")
    code, out, _ = ran(capsys, "report", f"laptop={first}", "second")
    assert code == 0
    assert "gilscope laptop, second\n" in out
    assert "is faster on laptop and slower on second" in " ".join(out.split())
    values = json.loads(ran(capsys, "report", "first", "second", "--json", "-")[1])
    assert [(each["name"], each["state"]) for each in values["hosts"]] == [("first", None), ("second", None)]


@pytest.mark.parametrize(("asked", "said"), [
    (("first", "other"), "was made on the same machine as another of them"),
    (("first", "first"), "is named twice"),
    (("published", "published-too"), "published-too share raw values, as copies of one run or parts of it do"),
    (("first", "copies/first"), "have the same name: give them different ones, as in `gilscope report laptop="),
    (("first", "copies"), "copies holds several runs: name one for each host"),
    (("first", "nothing"), "no folder and no run 'nothing'"),
    (("first", "threads"), "compares with threads and others with serial"),
])
def test_runs_that_are_no_hosts_of_one_comparison_are_refused(here, plain, capsys, asked, said):
    plain("first")
    plain("other")
    for name in ("first", "second"):
        shutil.copytree(plain(name, "host-2") if name == "second" else here / name, here.parent / "copies" / name)
    for name in ("published", "published-too"):   # without a host name, and by real values
        shutil.copytree(EXAMPLE / "own-function", here / name)
    maker = RunMaker(rounds=3)
    maker.measure(cell("threads", 1, "3.14"), 1.0)
    write(maker.run(("3.14",), baseline="threads", label="threads"), here.parent, "threads")
    code, out, err = ran(capsys, "report", *asked)
    assert (code, out) == (2, "")
    assert said in err


def test_folder_of_runs_says_that_they_may_be_hosts(fleet, capsys):
    path = fleet()
    (path / "fleet.json").unlink()
    code, _, err = ran(capsys, "report", "night")
    assert code == 2
    assert "or, if each is of a machine of its own, all of them" in err
    assert ran(capsys, "report", "night/host-1", "night/host-2")[0] == 0


def test_published_fleet_has_no_host_names_and_is_a_fleet_again(here, fleet, capsys):
    note = Host(name="host-9", state=HostState.LOST, note="ann@build7: no file /home/ann/results there")
    header = fleet(lost=(note,)) / "host-1" / "run.json"
    header.write_text(header.read_text().replace('"notes": []', '"notes": [{"text": "/home/ann/lib is a slow disk"}]'))
    code, out, _ = ran(capsys, "report", "night", "--publish", "public")
    assert code == 0
    assert "published in public" in out
    files = [each for each in here.parent.joinpath("public").rglob("*") if each.is_file()]
    assert not [each for each in files if any(text in each.read_text() for text in ("secret", "/home/", "ann@build7"))]
    assert [host.name for host in read_fleet(here.parent / "public").hosts] == ["host-1", "host-2", "host-9"]
    assert ran(capsys, "report", "public")[0] == 0


def test_page_of_a_fleet(here, fleet, capsys, monkeypatch):
    fleet(lost=(Host(name="host-9", state=HostState.LOST, note="ann@build7: no file /home/ann/results there"),))
    read = []
    monkeypatch.setattr(reports, "load_run", lambda path: read.append(path.name) or load_run(path))
    assert ran(capsys, "report", "night", "--html", "page.html")[0] == 0
    page = (here.parent / "page.html").read_text()
    assert "is faster on host-1 and slower on host-2" in page
    assert "secret" not in page
    assert "&lt;user&gt;@&lt;host&gt;: no file &lt;folder&gt;/results there" in page
    assert read == ["host-1", "host-2"]   # once, not once for each of the two reports


def test_page_of_runs_that_were_copied_together(here, plain, capsys):
    plain("first")
    plain("second", "host-2")
    assert ran(capsys, "report", "first", "second", "--html", "page.html")[0] == 0
    page = (here.parent / "page.html").read_text()
    assert "is faster on first and slower on second" in page
    assert "secret" not in page


@pytest.mark.parametrize(("asked", "said"), [
    (("night", "plain"), "night has 2 hosts, and compare is about one machine: name a host"),
    (("night", "plain"), "as in `gilscope compare night/host-1 plain`"),
    (("plain", "night"), "`gilscope compare plain night/host-1`"),
    (("night", "others", "--again"), "`gilscope compare night/host-1 others/host-3`"),
    (("night",), "nothing to compare it with"),
    (("night", "--builds", "3.14,3.14t"), "as in `gilscope compare night/host-1`"),
])
def test_what_cannot_be_compared_says_why(fleet, plain, capsys, asked, said):
    fleet()
    fleet("others", names=("host-3", "host-4"))
    plain()
    code, out, err = ran(capsys, "compare", *asked)
    assert (code, out) == (2, "")
    assert said in err


def test_one_host_of_a_fleet_is_compared_as_a_run(fleet, plain, capsys):
    fleet()
    plain()
    code, out, _ = ran(capsys, "compare", "night/host-1", "plain")
    assert code == 0
    assert "plain against night/host-1" in out
