from handles.res import Buffer


def work():
    size = 0
    for n in range(4000):
        size += len(Buffer(n % 100).data)
    return size
