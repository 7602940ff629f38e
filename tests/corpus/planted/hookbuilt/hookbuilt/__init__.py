try:
    from .native import mix
except ImportError:
    def mix(n):
        v = 17
        for i in range(n):
            v = (v * 31 + i) % 1000003
        return v
