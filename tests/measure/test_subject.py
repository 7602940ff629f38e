"""Any callable of a module is measured; what cannot be called or sent is refused up front, with what is in the way."""

import pickle
import sys
import threading

import pytest

from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.measure.child.subject import PayloadsError, load, pickle_reason
from gilscope.toolkit.measure.child.user_code import RefusedError, resolve
from gilscope.toolkit.measure.preparation import check_shadowing, inspect_function
from tests.measure.children import THREADS, USERCODE, make_spec, measure, target


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.syspath_prepend(str(USERCODE))
    yield
    sys.modules.pop("awkward", None)


def subject(function="awkward:plain", **names):
    return load(make_spec("/nowhere", target(function, **names)))


@pytest.mark.parametrize("function", [
    "awkward:plain", "awkward:decorated", "awkward:Account.fee", "math:sqrt", "os.path:join", "builtins:abs",
])
def test_function_that_is_found_by_its_own_name_is_sent_as_it_is(function):
    found = subject(function)
    assert found.task is not None
    assert found.sent is None
    assert found.notes == ()


SHAPES = [
    "awkward:nested", "awkward:square", "awkward:bound", "awkward:account.deposit",
    "awkward:Account.open", "awkward:account", "awkward:identity", "awkward:hidden_by_a_decorator",
    "awkward:main_function", "awkward:cached", "awkward:Account.Teller.fee",
]


@pytest.mark.parametrize("function", SHAPES)
def test_any_callable_of_a_module_is_sent_by_its_name(function):
    found = subject(function, payload="1")
    assert found.task(1) == (found.sent or found.task)(1) == 1
    assert pickle.loads(pickle.dumps(found.sent or found.task, protocol=5))(1) == 1


@pytest.mark.parametrize("function", ["awkward:account", "awkward:identity", "awkward:square", "awkward:Account.open"])
@pytest.mark.parametrize("runner", ["subinterpreters", "processes-forkserver", THREADS, "serial", "interpreter-pool"])
def test_any_callable_is_measured_in_every_model(function, runner, tmp_path):
    answer = measure(make_spec(tmp_path, target(function, tasks=2), runner=runner, workers=1 + (runner != "serial")))
    if answer.kind == "unavailable" and runner == "interpreter-pool":
        pytest.skip(answer.reason)
    assert (answer.kind, answer.fields.get("tasks")) == ("measured", 2), answer.reason


@pytest.mark.parametrize("runner", ["subinterpreters", "processes-forkserver", THREADS])
@pytest.mark.parametrize("function", ["awkward:count_up", "awkward:account.report"])
def test_function_without_payloads_is_called_without_arguments(function, runner, tmp_path):
    user = target(function, payload=None, tasks=3)
    answer = measure(make_spec(tmp_path, user, runner=runner, workers=2))
    assert (answer.kind, answer.fields.get("tasks")) == ("measured", 3), answer.reason


def test_coroutine_function_without_payloads_is_awaited(tmp_path):
    answer = measure(make_spec(tmp_path, target("awkward:fetch_all", payload=None, tasks=2), runner="asyncio"))
    assert answer.kind == "measured", answer.reason


@pytest.mark.parametrize("function", ["awkward:fetcher", "awkward:fetch_part"])
def test_object_that_returns_a_coroutine_is_awaited(function, tmp_path):
    assert subject(function).task is None
    answer = measure(make_spec(tmp_path, target(function, tasks=2), runner="asyncio", workers=2))
    assert answer.kind == "measured", answer.reason


@pytest.mark.parametrize(("function", "words"), [
    ("awkward:bound", "awkward:bound is a method of an Account object: each worker process and interpreter makes"),
    ("awkward:account", "awkward:account is an Account object: each worker"),
    ("awkward:identity", "awkward:identity is a partial object: each worker"),
    ("awkward:cached", "awkward:cached keeps its results (functools.cache): a call with a payload that it has seen"),
])
def test_what_to_know_of_an_object_is_said_before_it_is_measured(function, words):
    (note,) = subject(function).notes
    assert note.startswith(words)


@pytest.mark.parametrize(("function", "words"), [
    ("awkward:Account", ["called with one payload", "too many positional arguments"]),
    ("awkward:Account.deposit", ["is a method, and needs an object", "thing = Account(...)"]),
    ("awkward:part", ["called with one payload", "too many positional arguments"]),
    ("awkward:count_up", ["called with one payload", "too many positional arguments"]),
    ("__main__:plain", ["__main__", "name the module"]),
    ("awkward:NUMBER", ["awkward:NUMBER is an int, not a function"]),
    ("awkward:generate", ["awkward:generate is a generator function", "return"]),
    ("awkward:generating", ["awkward:generating is a generator function", "return"]),
    ("awkward:generate_async", ["awkward:generate_async is an async generator function"]),
    ("awkward:plian", ["awkward has no 'plian'; did you mean 'plain'?"]),
    ("awkward:NUMBER.plain", ["awkward has no 'NUMBER.plain'"]),
    ("awkwrad:plain", ["no module 'awkwrad'", "--path"]),
    ("awkward.deep:plain", ["no module 'awkward.deep'"]),
    ("incomplete:plain", ["incomplete imports 'not_installed_anywhere', which this build does not have"]),
])
def test_function_that_cannot_be_called_so_is_refused(function, words):
    with pytest.raises(RefusedError) as refused:
        subject(function)
    for word in words:
        assert word in str(refused.value)


def test_function_that_needs_payloads_is_refused_without_them():
    with pytest.raises(RefusedError, match=r"called without arguments, .* 'payload'; give it payloads \(--payloads"):
        subject(payload=None)


@pytest.mark.parametrize(("payloads", "words"), [
    ("awkward:LOCKED", ["payload 2 cannot be pickled: lock in payload 2['lock'] (", "_thread.lock"]),
    ("awkward:make_accounts", ["payload 0 cannot be pickled: lock in payload 0.lock (", "_thread.lock"]),
    ("awkward:make_slotted", ["payload 0 cannot be pickled: Slotted ("]),
    ("awkward:make_grumpy", ["payload 0 cannot be pickled: Grumpy in payload 0[0] (leave me alone)"]),
    ("awkward:make_deep", ["payload 0 cannot be pickled", "nested too deeply"]),
    ("awkward:make_numbers", []),
])
def test_payloads_that_cannot_be_pickled_are_named_and_still_loaded(payloads, words):
    found = subject(payloads=payloads)
    assert found.payloads
    assert (found.unpicklable is None) == (not words)
    for word in words:
        assert word in found.unpicklable


@pytest.mark.parametrize(("payloads", "what", "error"), [
    ("awkward:make_needy", "awkward:make_needy, called without arguments, raises", TypeError),
    ("awkward:make_leaving", "awkward:make_leaving, called without arguments, raises", SystemExit),
    ("awkward:make_broken_off", "awkward:make_broken_off, called without arguments, raises", KeyError),
])
def test_payloads_that_raise_are_told_from_refused_ones(payloads, what, error):
    with pytest.raises(PayloadsError) as failed:
        subject(payloads=payloads)
    assert str(failed.value) == what
    assert isinstance(failed.value.raised, error)


@pytest.mark.parametrize(("payloads", "words"), [
    ("awkward:NOTHING", ["awkward:NOTHING gave no payloads"]),
    ("awkward:TEXT", ["a sequence of payloads, not str"]),
    ("awkward:TABLE", ["a sequence of payloads, not dict"]),
    ("awkward:NUMBER", ["a sequence of payloads, not int"]),
    ("awkward:make_none", ["a sequence of payloads, not NoneType"]),
    ("awkward:missing", ["awkward has no 'missing'"]),
])
def test_payloads_that_are_no_sequence_are_refused(payloads, words):
    with pytest.raises(RefusedError) as refused:
        subject(payloads=payloads)
    for word in words:
        assert word in str(refused.value)


def test_unpicklable_part_of_a_loop_is_named():
    looped = {"self": None, "lock": threading.Lock()}
    looped["self"] = looped
    assert "lock in payload 0['lock']" in pickle_reason(looped, "payload 0")


@pytest.mark.parametrize(("payloads", "expected"), [("awkward:make_numbers", [0, 1, 2]), ("awkward:ITERATOR", [1, 2])])
def test_payloads_may_be_any_iterable(payloads, expected):
    assert list(subject(payloads=payloads).payloads) == expected


def test_one_payload_is_repeated():
    assert list(subject(payload="(1, 'a')", tasks=3).payloads) == [(1, "a")] * 3


def test_coroutine_function_has_the_async_form_alone():
    found = subject("awkward:fetch")
    assert found.task is None
    assert found.async_task is not None


def test_second_form_must_be_a_coroutine_function():
    assert subject(async_function="awkward:fetch").async_task is not None
    with pytest.raises(RefusedError, match="awkward:plain is not a coroutine function"):
        subject(async_function="awkward:plain")


def test_check_must_be_a_function():
    with pytest.raises(RefusedError, match="awkward:NUMBER is an int, not a function"):
        subject(check="awkward:NUMBER")


def test_coroutine_function_runs_in_asyncio_alone(tmp_path):
    user = target("awkward:fetch", tasks=2)
    assert measure(make_spec(tmp_path, user, runner="asyncio", workers=2)).kind == "measured"
    answer = measure(make_spec(tmp_path, user, runner=THREADS, workers=2))
    assert (answer.kind, answer.reason) == ("unavailable", "it is a coroutine function: only asyncio awaits it")


def environment():
    from gilscope.toolkit.measure.preparation import child_environment

    return child_environment([USERCODE])


def test_notes_reach_the_plan(tmp_path):
    found = inspect_function(target("awkward:account"), sys.executable, environment(), tmp_path)
    assert "each worker process" in found.notes[0]


def test_user_function_is_described(tmp_path):
    user = target("awkward:plain", async_function="awkward:fetch")
    found = inspect_function(user, sys.executable, environment(), tmp_path)
    assert (found.name, found.has_sync, found.has_async, found.requires) == ("awkward:plain", True, True, ("awkward",))


@pytest.mark.parametrize(("user", "words"), [
    (target("awkward:generate"), ["cannot measure awkward:generate: awkward:generate is a generator"]),
    (target("broken:plain"), ["ZeroDivisionError: while importing", "broken.py"]),
    (target("awkward:plain", payloads="awkward:make_trouble"), ["OSError: no such table", "in make_trouble"]),
])
def test_refusal_reaches_the_user(user, words, tmp_path):
    with pytest.raises(ToolkitError) as refused:
        inspect_function(user, sys.executable, environment(), tmp_path)
    for word in words:
        assert word in str(refused.value)


@pytest.mark.parametrize("name", ["gilscope.py", "gilscope/__init__.py"])
def test_module_with_our_name_is_refused(name, tmp_path):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.touch()
    with pytest.raises(ToolkitError, match="has the name of gilscope itself"):
        check_shadowing(target("mine:function"), [tmp_path])


@pytest.mark.parametrize("name", ["gilscope:f", "gilscope.workloads.cpu:countdown"])
def test_function_in_a_package_of_ours_is_refused(name, tmp_path):
    with pytest.raises(ToolkitError, match="is gilscope's own"):
        check_shadowing(target(name), [tmp_path])


def test_other_names_are_welcome(tmp_path):
    for name in ("toolkit", "workloads", "runners", "gilscope_x"):
        (tmp_path / f"{name}.py").touch()
        check_shadowing(target(f"{name}:f"), [tmp_path])


def test_names_of_a_module_are_cut_and_counted_and_imported_modules_are_none_of_them(tmp_path, monkeypatch):
    names = [f"f{number}" for number in range(11)]
    (tmp_path / "many_names.py").write_text("import os\n" + "".join(f"def {name}(): pass\n" for name in names))
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(RefusedError, match=r"it has f0, f1, f10, f2, f3, f4, f5, f6 and 3 more$"):
        resolve("many_names:nothing_alike")
