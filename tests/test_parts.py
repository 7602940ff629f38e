"""Which tests each part of the suite has: `--part` of pytest."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import conftest


class Item:
    """A test as pytest has collected it, with the marks it is given."""

    def __init__(self, name, case, params=None, **marks):
        self.path, self.originalname, self.case = Path("test_it.py"), name, case
        if params is not None:
            self.callspec = SimpleNamespace(params=params)
        self.marks = {mark: SimpleNamespace(args=args) for mark, args in marks.items()}

    def get_closest_marker(self, name):
        return self.marks.get(name)


def cases(name, count, **marks):
    return [Item(name, case, **marks) for case in range(count)]


ALL = [*cases("plain", 3), *cases("slow", 2, slow=()), *cases("sampled", 50, sample=(10,)),
       *cases("few", 4, sample=(9,)), *cases("newest", 2, newest=()), *cases("syntax", 9, every_python=())]


def in_part(part, items=ALL):
    """Return (the items of the part, those that are left out)."""
    kept, left_out = [*items], []

    def deselected(items):
        left_out.extend(items)

    config = SimpleNamespace(option=SimpleNamespace(part=part), hook=SimpleNamespace(pytest_deselected=deselected))
    conftest.pytest_collection_modifyitems(config, kept)
    return kept, left_out


def counts(items):
    names = [item.originalname for item in items]
    return {name: names.count(name) for name in dict.fromkeys(names)}


def test_fast_part_has_nothing_slow_and_samples():
    assert counts(in_part("fast")[0]) == {"plain": 3, "sampled": 10, "few": 4, "newest": 2, "syntax": 9}


@pytest.mark.parametrize("known_by", ["label", "path"])
def test_fast_part_has_tests_of_all_builds_on_one_with_the_gil_and_one_without(known_by, monkeypatch):
    labels, free = ("current", "3.12", "3.14", "3.13t", "3.14t"), {"3.13t", "3.14t"}
    monkeypatch.setattr(conftest, "builds", lambda: {label: f"/{label}" for label in labels})
    monkeypatch.setattr(conftest, "is_free_threaded", lambda path: path[1:] in free)
    items = [Item(name, (label, word), {"word": word, "it": label if known_by == "label" else f"/{label}"}, **marks)
             for name, marks in (("each", {}), ("other", {}), ("some", {"sample": (3,)}))
             for label in labels for word in ("a", "b")]
    items += [Item("made up", label, {"name": label}) for label in labels[1:]]
    found, _ = in_part("fast", [*items, Item("plain", 0, {"word": "a"})])
    kept = {name: [item.case for item in found if item.originalname == name] for name in ("each", "other", "some")}
    assert counts(found) == {"each": 4, "other": 4, "some": 3, "made up": 4, "plain": 1}
    for name in ("each", "other"):
        assert {word for _, word in kept[name]} == {"a", "b"}
        assert sorted(label in free for label in {label for label, _ in kept[name]}) == [False, True]


def test_rest_is_what_the_fast_part_leaves_out():
    fast, left_out = in_part("fast")
    rest, others = in_part("rest")
    assert (rest, others) == (left_out, fast)
    assert [item for item in ALL if item in {*fast, *rest}] == ALL


def test_oldest_python_gets_two_fast_cases_of_each_test_but_all_that_are_about_syntax():
    oldest, _ = in_part("oldest")
    assert counts(oldest) == {"plain": 2, "sampled": 2, "few": 2, "syntax": 9}
    fast, _ = in_part("fast")
    rest, _ = in_part("oldest-rest")
    assert [item for item in fast if item in oldest] == oldest
    assert [item for item in fast if item not in oldest] == rest


def test_without_a_part_all_tests_run():
    assert in_part(None) == (ALL, [])


@pytest.mark.parametrize("part", conftest.PARTS)
def test_the_same_cases_are_drawn_each_time_whatever_else_there_is(part):
    drawn = in_part(part)[0]
    assert in_part(part)[0] == drawn
    assert [item for item in in_part(part, [*cases("another", 7, sample=(2,)), *ALL])[0] if item in ALL] == drawn
