from hookbuilt import mix


def work():
    return [mix(1500) for _ in range(150)]
