from exporter.core import rows


def test_rows():
    assert rows(2) == ["0,0", "1,1"]
