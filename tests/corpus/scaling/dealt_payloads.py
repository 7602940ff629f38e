"""Each thread works on payloads of its own."""


def payloads():
    return [{"values": [float(number) for number in range(50)]} for _ in range(8)]


def f(job):
    total = 0.0
    for value in job["values"]:
        total += value
    return total
