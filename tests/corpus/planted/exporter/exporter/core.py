def rows(n):
    return [f"{i},{i * i % 97}" for i in range(n)]


def export_binary(n):
    """The nightly export."""
    from exporter import _fast
    return _fast.mix(n)
