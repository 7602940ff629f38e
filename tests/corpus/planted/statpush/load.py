from statpush.stats import stats


def work():
    for n in range(12_000):
        stats.add(n % 16)
