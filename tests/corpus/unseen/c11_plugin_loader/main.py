# EXPECT: clean
"""Plugins are loaded on first use, once, whoever asks first."""
import threading

import plugins


def use(name, text, out):
    out.append(plugins.get(name).apply(text))


def main():
    outs = [[] for _ in range(6)]
    names = ["upper", "title", "upper", "reverse", "title", "reverse"]
    threads = [
        threading.Thread(target=use, args=(name, "some text", out))
        for name, out in zip(names, outs)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print(outs)
    print(sorted(plugins.loaded))


if __name__ == "__main__":
    main()
