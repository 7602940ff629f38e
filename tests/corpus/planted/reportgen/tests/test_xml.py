from reportgen.xml import report


def test_report():
    assert report(1) > 10
