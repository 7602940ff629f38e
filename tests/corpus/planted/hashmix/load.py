import hashmix


def work():
    return [hashmix.mix(2_000) for _ in range(200)]
