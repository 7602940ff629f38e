from outbox.mail import write


def work():
    return sum(write(n) for n in range(200))
