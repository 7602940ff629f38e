"""The public functions of a module, called as their doctests do: on free-threaded builds, in real processes."""

import textwrap
from dataclasses import replace

import pytest

from gilscope.toolkit.hammer.offered_calls import OfferedCall
from gilscope.toolkit.scale import api
from gilscope.toolkit.scale.api import LIMITED, ApiRequest, CallableOutcome, CallableScaling, investigate_api
from gilscope.toolkit.scale.judgement import ScalingEvidence, Span
from gilscope.toolkit.scale.zygote_process import CallMode, UnscalableFunctionError, ZygoteProcess

MODULE = '''
    import os, threading

    def works(number):
        """
        >>> works(20)
        """
        return sum(range(number))
    def refuses():
        """
        >>> refuses()
        """
        raise LookupError("no such thing")
    def crashes():
        """
        >>> crashes()
        """
        os.abort()
    def crashes_in_threads(number):
        """
        >>> crashes_in_threads(2)
        """
        if threading.current_thread() is not threading.main_thread():
            os.abort()
    def generates(number):
        """
        >>> generates(3)
        """
        yield number
    def has_no_example(number):
        return number
    class Owned:
        """Refuses other threads than the one that made it.

        >>> owned = Owned([1])
        >>> owned.put([2])
        """
        def __init__(self, values):
            self.thread = threading.get_ident()
        def put(self, values):
            if threading.get_ident() != self.thread:
                raise RuntimeError("shared")
'''
SHARED = '''
    class Provider:
        def __init__(self):
            self.factor = 7.5
        def price(self, amount):
            return self.factor * amount

    PROVIDER = Provider()

    def total(number):
        """
        >>> total(100)
        """
        return sum(PROVIDER.price(amount) for amount in range(number))
    def alone(number):
        """
        >>> alone(100)
        """
        return sum(range(number))
'''
pytestmark = pytest.mark.builds("free")


def request(folder, text=MODULE, **changes):
    (folder / "offers.py").write_text(textwrap.dedent(text))
    return replace(ApiRequest(module="offers", threads=2, folders=(folder,), files=(), seconds=120.0), **changes)


def outcomes(found):
    return {each.name: each.outcome for each in found.callables}


def test_each_callable_has_an_outcome_and_what_fails_says_why(python, tmp_path, monkeypatch):
    monkeypatch.setattr(api, "_to_investigate", lambda *_: ())
    found = investigate_api(python, request(tmp_path), lambda _: None)
    assert found.complete
    by_name = {each.name: each for each in found.callables}
    assert {name: each.problem for name, each in by_name.items() if each.outcome is CallableOutcome.FAILED} == {
        "refuses": "LookupError: no such thing", "crashes": "crashed with SIGABRT",
        "crashes_in_threads": "the measuring process died: SIGABRT",
        "generates": "NoWorkError: generates(3) is a generator: calling it runs nothing; name a function that uses it "
                     "up"}
    assert by_name["has_no_example"].outcome is CallableOutcome.NO_CALL
    assert (by_name["works"].call, by_name["works"].place) == ("works(20)", "offers.works:2")
    # Their verdicts are the machine's; they have one, and were measured.
    for name in ("works", "Owned", "Owned.put"):
        assert by_name[name].evidence is not None
        assert by_name[name].outcome not in {CallableOutcome.FAILED, CallableOutcome.NO_CALL, CallableOutcome.NO_TIME}


def test_each_thread_makes_the_object_and_the_arguments_of_its_call(python, tmp_path):
    recipe = {"imports": [], "setup": ["owned = Owned([1])"], "receiver": "owned", "callee": "put", "args": ["[2]"],
              "kwargs": [], "module": "offers", "place": "offers:4"}
    with ZygoteProcess(python, request(tmp_path).folders) as process:
        process.load("offers:Owned.put", None, None, 2, recipe=recipe)
        assert process.measure(CallMode(threads=2)).made > 0     # it would raise


def test_nothing_is_begun_when_the_budget_is_over(python, tmp_path):
    found = outcomes(investigate_api(python, request(tmp_path, seconds=0.0), lambda _: None))
    assert found["works"] is found["Owned.put"] is CallableOutcome.NO_TIME
    assert found["refuses"] is CallableOutcome.FAILED
    assert found["has_no_example"] is CallableOutcome.NO_CALL


@pytest.mark.parametrize(("text", "message"), [
    ("import no_such_package", r"offers cannot be imported: ModuleNotFoundError: No module named 'no_such_package'"),
    ("from os.path import join", r"offers offers no function or type of its own: name the module that does"),
])
def test_module_that_offers_nothing_is_refused_with_the_reason(python, text, message, tmp_path):
    with pytest.raises(UnscalableFunctionError, match=message):
        investigate_api(python, request(tmp_path, text), lambda _: None)


@pytest.mark.slow    # up to two minutes
@pytest.mark.quiet   # two threads must have a core each
def test_shared_object_is_found_behind_the_function_that_uses_it(python, tmp_path):
    for seconds in (120.0, 240.0, 480.0):
        measured = investigate_api(python, request(tmp_path, SHARED, seconds=seconds), lambda _: None)
        found = {each.name: each for each in measured.callables}
        assert found["Provider"].outcome is CallableOutcome.NO_CALL
        total = found["total"]
        if total.outcome in LIMITED and total.found and total.found.objects:
            break      # otherwise, neighbours of this machine disturbed the threads
    assert total.outcome in LIMITED
    # On 3.13t, a search among few clean chunks may keep an object that costs little.
    assert "offers.PROVIDER" in {each.name for each in total.found.objects}


def seen(name, outcome, reached):
    span = None if reached is None else Span(ratio=reached, lo=reached, hi=reached)
    return CallableScaling(name=name, call=f"{name}()", place="a:1", outcome=outcome, look=ScalingEvidence(
        threads=2, clean_seconds=0.1, enough=True, of_ceiling=span, speedup=span, ceiling=span))


def test_largest_loss_is_investigated_first_and_what_is_unsure_last():
    looks = [seen("fine", CallableOutcome.SCALES, 1.0), seen("open", CallableOutcome.UNSURE, 0.3),
             seen("less", CallableOutcome.PLATEAUS, 0.7), seen("hidden", CallableOutcome.UNSURE, None),
             seen("most", CallableOutcome.SLOWER, 0.2), seen("tiny", CallableOutcome.TOO_SHORT, 0.9)]
    calls = [OfferedCall(name=each.name, shown=each.call, place=each.place, recipe={}) for each in looks]
    chosen = api._to_investigate(calls, {each.name: each for each in looks})
    assert [each.name for each in chosen] == ["most", "less", "open", "hidden"]
    assert [each.name for each in sorted(looks, key=api._order)] == ["most", "less", "fine", "open", "hidden", "tiny"]
