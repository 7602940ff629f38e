from sensorbuf.buf import SENSORS, add


def work():
    for n in range(40_000):
        add(n % SENSORS, 1.0)
