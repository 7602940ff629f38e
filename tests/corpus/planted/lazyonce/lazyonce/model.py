"""A model that is loaded once, under a lock; the rest is local."""
import threading

_model = None
_loading = threading.Lock()
_local = threading.local()


def model():
    global _model
    if _model is None:
        with _loading:
            if _model is None:
                _model = tuple(n * 17 % 101 for n in range(500))
    return _model


def predict(sample):
    weights = model()
    scratch = getattr(_local, "scratch", None)
    if scratch is None:
        scratch = _local.scratch = [0] * len(weights)
    for n, weight in enumerate(weights):
        scratch[n] = weight * sample
    return sum(scratch) % 1009
