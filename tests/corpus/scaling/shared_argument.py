"""All threads get the same argument, and take a value from it again and again."""


def payloads():
    return [{"rates": [1.25, 2.5], "name": "euro"}]


def f(conf):
    total = 0.0
    for _ in range(100):
        rates = conf["rates"]
        total += rates[0]
    return total
