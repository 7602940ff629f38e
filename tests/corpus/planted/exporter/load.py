from exporter.core import rows


def work():
    return len(rows(60_000))
