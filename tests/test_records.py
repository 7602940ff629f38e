"""Dataclasses as JSON: what is written comes back, and damage is named by field and value."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

import pytest

from gilscope.toolkit.records import DamagedError, from_plain, plain_value, to_plain

pytestmark = pytest.mark.newest


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    size: float
    bolts: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Trailer:
    size: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Car:
    name: str
    colour: Colour
    wheels: tuple[Wheel, ...]
    spare: Wheel | None = None
    built: tuple[int, str] | None = None
    gears: Literal["hand", "automatic"] = "hand"
    seats: Mapping[str, int] = field(default_factory=dict)
    price: int | str = ""
    extra: dict[str, Any] = field(default_factory=dict)
    parts: list[str] = field(default_factory=list)
    new: bool = False
    behind: Wheel | Trailer | Mapping[str, float] | None = None
    rows: Mapping[int, str] | Trailer = field(default_factory=dict)
    ways: Mapping[tuple[str, int], Wheel] = field(default_factory=dict)
    manual: Path | None = None

    def __post_init__(self):
        if self.name == "pi":
            raise ValueError("no car is called so")


SMALL = Car(name="a", colour=Colour.RED, wheels=())
LARGE = Car(name="b", colour=Colour.BLUE, wheels=(Wheel(size=1), Wheel(size=2.5, bolts=4)), spare=Wheel(size=1.0),
            built=(1999, "May"), gears="automatic", seats={"front": 2}, price="on request", extra={"any": [None, 1.5]},
            parts=["door"], new=True, behind=Trailer(size=1.0), rows={1: "front", 2: "back"},
            ways={("north", 1): Wheel(size=1)}, manual=Path("glove", "box"))


@pytest.mark.parametrize("car", [
    SMALL, LARGE, replace(LARGE, behind=Wheel(size=1.0)), replace(LARGE, behind={"a": 1.0}), replace(LARGE, behind={}),
    replace(LARGE, rows=Trailer(size=1.0))])
def test_record_comes_back_through_json(car):
    assert from_plain(Car, json.loads(json.dumps(to_plain(car)))) == car


def test_field_with_a_default_may_be_missing():
    assert from_plain(Car, {"name": "a", "colour": "red", "wheels": []}) == SMALL


@pytest.mark.parametrize(("change", "said"), [
    ({"name": 3}, "name is 3, not text"),
    ({"name": "pi"}, "it is not possible: no car is called so"),
    ({"doors": 3}, "it has an unknown field 'doors'"),
    ({"colour": "green"}, "colour is 'green', not red or blue"),
    ({"colour": []}, "colour is [], not red or blue"),
    ({"gears": "none"}, "gears is 'none', not hand or automatic"),
    ({"wheels": {}}, "wheels is {}, not a list"),
    ({"wheels": [{"size": 1}, {"bolts": 1}]}, "wheels[1] lacks size"),
    ({"wheels": [{"size": math.nan}]}, "wheels[0].size is nan, not a finite number"),
    ({"wheels": [{"size": 10**400}]}, "(401 characters), not a finite number"),
    ({"wheels": [{"size": 1, "bolts": True}]}, "wheels[0].bolts is True, not a whole number"),
    ({"wheels": [{"size": 1, "bolts": 2**63}]}, "wheels[0].bolts is 9223372036854775808, not a whole number"),
    ({"spare": {"size": "1"}}, "spare.size is '1', not a finite number"),
    ({"spare": "one"}, "spare is 'one', not an object or null"),
    ({"built": [1999]}, "built is [1999], not a list of 2"),
    ({"built": [1999, 5]}, "built[1] is 5, not text"),
    ({"seats": {"front": "two"}}, "seats.front is 'two', not a whole number"),
    ({"price": 1.5}, "price is 1.5, not a whole number or text"),
    ({"new": 1}, "new is 1, not true or false"),
    ({"behind": 1}, "behind is 1, not an object or an object or an object or null"),
    ({"rows": [[1, "front"], ["2", "back"]]}, "rows[1][0] is '2', not a whole number"),
    ({"rows": [[1]]}, "rows[0] is [1], not a list of 2"),
    ({"ways": [[["north", 1], {"bolts": 1}]]}, "ways[0][1] lacks size"),
    ({"manual": 1}, "manual is 1, not a path or null"),
])
def test_damage_is_named_by_field_and_value(change, said):
    with pytest.raises(DamagedError) as caught:
        from_plain(Car, to_plain(LARGE) | change)
    assert said in str(caught.value)


def test_path_of_the_record_stands_in_front_of_its_fields():
    with pytest.raises(DamagedError, match=r"^cars\[2\]\.wheels\[0\]\.size is None, not a finite number$"):
        from_plain(Car, to_plain(SMALL) | {"wheels": [{"size": None}]}, "cars[2]")
    with pytest.raises(DamagedError, match=r"^cars\[2\] is 'a', not an object$"):
        from_plain(Car, "a", "cars[2]")


def test_infinity_is_a_number_where_the_reader_says_so():
    assert from_plain(Wheel, {"size": math.inf}, finite=False).size == math.inf
    with pytest.raises(DamagedError):
        from_plain(Wheel, {"size": math.inf})


def test_value_that_is_no_dataclass_comes_back_too():
    cars = {"mine": (SMALL, 1)}
    assert from_plain(dict[str, tuple[Car, int]], json.loads(json.dumps(plain_value(cars)))) == cars
    with pytest.raises(DamagedError, match=r"^\[1\] is 'a', not a whole number$"):
        from_plain(list[int], [1, "a"])


@dataclass(frozen=True)
class Twin:
    size: float


def test_union_of_dataclasses_with_the_same_fields_is_refused():
    with pytest.raises(AssertionError, match="have the same fields"):
        from_plain(Trailer | Twin, {"size": 1.0})
