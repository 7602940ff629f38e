from cleanext import cell


def work():
    return len([cell(3000) for _ in range(800)])
