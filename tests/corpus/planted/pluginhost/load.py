from pluginhost.host import send


def work():
    for n in range(12_000):
        send({"from": n % 5, "text": "  hello "})
