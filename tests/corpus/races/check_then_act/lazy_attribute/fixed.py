# EXPECT: clean
"""hasattr decides whether the attribute is made."""

import threading


class Page:
    def __init__(self, words):
        self.words = words
        self.rendering = threading.Lock()

    def render(self):
        with self.rendering:
            if not hasattr(self, "text"):
                self.text = [word.title() for word in self.words]
            return self.text


page = Page(["a", "page", "of", "words"])
shown = [None, None]


def show(place):
    shown[place] = len(page.render())


viewers = [threading.Thread(target=show, args=(place,)) for place in (0, 1)]
for viewer in viewers:
    viewer.start()
for viewer in viewers:
    viewer.join()
print(shown)
