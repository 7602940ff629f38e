from reportgen.xml import report


def work():
    return report(6000)
