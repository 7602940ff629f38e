"""A published run keeps its numbers and tells nothing of the machine's folders."""

import dataclasses

from gilscope.toolkit.model import Cell, Failure, Note
from gilscope.toolkit.publish import _scrubbed, without_traces
from tests.fakes import make_run

CONFIG = ("'--prefix=/home/me/.pyenv/versions/3.12.1' '--enable-shared' '--with-lto' 'CFLAGS=-O3 -g' "
          "'LDFLAGS=-L/home/me/.pyenv/versions/3.12.1/lib -Wl,-rpath,/home/me/.pyenv/versions/3.12.1/lib'")


def test_no_folder_is_told():
    run = make_run()
    build = dataclasses.replace(
        run.builds[0], config_args=CONFIG, executable="/home/me/bin/python", base_executable="/home/me/bin/python3.12")
    failure = Failure(cell=Cell(workload="w", runner="serial", workers=1, build=build.label), kind="exception",
                      reason="ValueError: no", output='File "/home/me/work/mod.py", line 3', round=0)
    published = without_traces(dataclasses.replace(
        run, label="/home/me/results/nightly", notes=(Note(text="see /home/me/log.txt"),),
        builds=(build,), failures=(failure,), options={"paths": ["/home/me/work"], "selection": {}}))
    assert "/home" not in repr(published)
    assert published.label == "nightly"
    assert published.builds[0].config_args == "'--enable-shared' '--with-lto' 'CFLAGS=-O3 -g'"
    assert published.failures[0].reason == "ValueError: no"
    assert published.measurements == run.measurements


def test_no_address_is_told():
    run = make_run()
    failure = dataclasses.replace(run.failures[0], reason="ssh: ann@build7: Permission denied")
    published = without_traces(dataclasses.replace(run, failures=(failure,), notes=(Note(text="by bob@box8.example"),),
                               skips=(dataclasses.replace(run.skips[0], reason="no ann@build7"),)))
    assert published.failures[0].reason == "ssh: <user>@<host>: Permission denied"
    assert "ann@" not in repr(published)
    assert "bob@" not in repr(published)


def test_options_that_nobody_can_read_stay_out():
    run = make_run()
    build = dataclasses.replace(run.builds[0], config_args="'--prefix=/home/me")
    assert without_traces(dataclasses.replace(run, builds=(build,))).builds[0].config_args == ""


def test_pyperf_reads_a_suite_whose_build_was_configured_with_folders_alone():
    text = "'--prefix=/home/me/python' '--disable-test-modules'"
    suite = {"benchmarks": [{"runs": [{"metadata": {"python_config_args": text, "hostname": "mine"}}]}],
             "metadata": {"python_config_args": "'--prefix=/home/me/python'", "cpu_count": 2}}
    assert _scrubbed(suite) == {"benchmarks": [{"runs": [{"metadata": {
        "python_config_args": "'--disable-test-modules'"}}]}], "metadata": {"cpu_count": 2}}
