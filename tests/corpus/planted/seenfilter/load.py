import threading

from seenfilter.bloom import seen


def work():
    me = threading.get_ident()
    missing = 0
    for page in range(2500):
        url = f"https://example.org/{me}/{page}"
        seen.add(url)
        missing += url not in seen
    return missing
