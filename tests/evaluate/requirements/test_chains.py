"""Who needs a package."""

from gilscope.toolkit.evaluate.requirements.chains import asked_for, chains

NEEDS = {"web": ("models", "core"), "models": ("core",), "core": ("core-binary",), "core-binary": ("models",)}


def test_shortest_way_from_what_was_asked_for():
    found = chains(NEEDS, ["models", "web"])
    assert found["web"] == ("web",)
    assert found["core-binary"] == ("models", "core", "core-binary")


def test_what_nobody_asked_for_has_no_way():
    assert "web" not in chains(NEEDS, ["models"])


def test_what_no_other_one_needs_was_asked_for():
    assert asked_for(NEEDS) == ("web",)
    assert asked_for({"one": (), "two": ()}) == ("one", "two")
