from branchoffice.office import Office


def work():
    office = Office("here")
    for n in range(15_000):
        office.sell(n % 9, 1)
    return office.name
