from sharder.ids import allocate, load_of


def work():
    total = 0
    for _ in range(8000):
        total += load_of(*allocate())
    return total > 0
