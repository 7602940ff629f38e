from envswitch.state import job


def work():
    return sum(job(n) for n in range(60)) > 0
