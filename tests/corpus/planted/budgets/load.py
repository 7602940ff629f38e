from budgets.book import account, cost


def work():
    ok = 0
    for n in range(1500):
        ok += account(f"team{n % 8}").spend(cost(n))
    return ok
