from cleanext import cell, mix


def test_mix():
    assert mix(0) == 17


def test_cell():
    assert str(cell(0)) == "&lt;17&gt;"
