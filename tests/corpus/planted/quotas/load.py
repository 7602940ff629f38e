from quotas.limits import send


def work():
    sent = 0
    for customer in range(3000):
        sent += send(customer, 2)
        for check in range(30):
            sent += check * 0
    return sent
