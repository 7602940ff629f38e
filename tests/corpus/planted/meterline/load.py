from meterline.fields import MAIN, record


def work():
    for amount in range(20_000):
        record(amount)
    return MAIN.hits
