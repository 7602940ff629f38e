from printqueue.spool import render, spool


def work():
    for n in range(40):
        render(8000)
        spool(20)
