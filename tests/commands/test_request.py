"""What a run asks for: what a first look leaves out; packages, by name and from requirements files."""

from argparse import Namespace

import pytest

from gilscope.toolkit import cli
from gilscope.toolkit.commands.run import request
from gilscope.toolkit.commands.run.request import (
    FIXED_AT_START,
    make_selection,
    make_settings,
    refuse_beside_resume,
    user_packages,
)
from gilscope.toolkit.errors import BadFileError, ToolkitError
from gilscope.toolkit.report import DOCUMENT_FORMATS


def packages(*files, named=()):
    return user_packages(Namespace(packages=list(named), requirements=list(files)))


def test_requirements_are_read_as_pip_reads_them(tmp_path, capsys):
    (tmp_path / "limits.txt").write_text("two<3\n")
    (tmp_path / "more.txt").write_text("-c limits.txt\ntwo\n")
    file = tmp_path / "requirements.txt"
    file.write_text("# all\n-r more.txt\none==1.0 \\\n  --hash=sha256:0123  # pinned\n"
                    "three; python_version < '3.13'\n")
    assert packages(file, named=["two", "zero"]) == ("two", "zero", "two<3", "one==1.0",
                                                     "three; python_version < '3.13'")
    assert "hashes are not checked" in capsys.readouterr().err


@pytest.mark.parametrize(("line", "told"), [
    ("-e .", "names '.': folders and addresses are not installed"), ("./wheels/one.whl", "folders and addresses"),
    ("git+https://example.org/one", "--build LABEL=PATH"), ("--index-url https://example.org", "has --index-url"),
    ("one --no-binary :all:", "has --no-binary"), ("--pre", "has --pre"),
])
def test_line_that_is_not_followed_is_refused(tmp_path, line, told):
    file = tmp_path / "requirements.txt"
    file.write_text(f"{line}\n")
    with pytest.raises(ToolkitError, match=told):
        packages(file)


def test_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(BadFileError, match=r"absent\.txt cannot be read"):
        packages(tmp_path / "absent.txt")


def selection(*words):
    return make_selection(cli.make_parser(("run",)).parse_args(["run", *words]))


@pytest.mark.parametrize(("cores", "widest"), [(1, 2), (2, 2), (8, 8)])
def test_first_look_asks_for_the_widest_number_of_workers_alone(monkeypatch, cores, widest):
    monkeypatch.setattr(request, "usable_cores", lambda: cores)
    found = selection("--quick", "primes")
    assert found.workers == (widest,)
    assert not found.controls
    assert "interpreter-pool" not in found.models
    assert selection("primes").workers[0] == 1


def test_what_is_asked_for_is_not_left_out():
    found = selection("--quick", "primes", "--models", "threads,interpreter-pool", "--workers", "1,2")
    assert (found.models, found.workers, found.controls) == (("threads", "interpreter-pool"), (1, 2), True)
    assert selection("primes").controls


def test_models_that_need_a_package_take_part_only_when_they_are_named():
    for words in ([], ["--quick"], ["--rigorous"]):
        assert not [name for name in selection(*words).models if name.startswith("dask")]
    assert selection("--models", "dask,dask-threads").models == ("dask", "dask-threads")


def test_first_look_at_a_function_of_the_users_is_as_lean():
    found = selection("--quick", "mine:work", "--payload", "1")
    assert found.workers == selection("--quick", "primes").workers
    assert not found.controls


@pytest.mark.parametrize(("words", "rounds", "where_open"), [
    ((), 12, False),
    (("--rounds", "5"), 5, False),
    (("--quick",), 12, True),
    (("--quick", "--rounds", "5"), 5, False),                      # who asks for rounds gets them
    (("--budget", "5m"), 12, True),
    (("--budget", "5m", "--rounds", "5"), 5, False),
    (("--resolution", "2%"), 12, True),
    (("--resolution", "2%", "--rounds", "50"), 50, True),          # at most
])
def test_rounds_go_to_what_is_open_where_time_is_short_or_enough_is_named(words, rounds, where_open):
    found = make_settings(cli.make_parser(("run",)).parse_args(["run", "primes", *words]))
    assert (found.rounds, found.where_open) == (rounds, where_open)


def test_each_option_of_run_can_change_on_resume_or_is_refused():
    defaults = vars(parsed_run())
    can_change = {
        "resume", "rounds", "budget", "resolution", "timeout", "fleet", "take_turns", "wait_quiet",
        "status_file", "full",
        *(each.name for each in DOCUMENT_FORMATS), "add_session",   # which `check_sessions` refuses beside --resume
    }
    assert set(defaults) - {"run", "command"} == can_change | set(FIXED_AT_START)


@pytest.mark.parametrize("words", [["--tasks", "8"], ["--payload", "1"], ["--quick"], ["--strict"]])
def test_resumed_run_keeps_its_options(words):
    with pytest.raises(ToolkitError, match=f"{words[0]}.* cannot be changed"):
        refuse_beside_resume(parsed_run("--resume", "x", *words))


def parsed_run(*words):
    return cli.make_parser(("run",)).parse_args(["run", *words])
