def _mix(n):
    v = 17
    for i in range(n):
        v = (v * 31 + i) % 1000003
    return v


try:
    from ._speed import mix
except ImportError:
    mix = _mix
