import pytest
from meterline.fields import Meter


def test_field():
    m = Meter()
    m.hits += 1
    assert m.hits == 1


def test_type():
    with pytest.raises(TypeError):
        Meter().hits = "x"
