# EXPECT: unsynchronised read/write | *theme* | 13, 20
from concurrent.futures import ThreadPoolExecutor


class Settings:
    theme = None

    def __init__(self):
        self.theme = "plain"


def load(settings):
    settings.theme = "dark"
    return True


settings = Settings()
with ThreadPoolExecutor(max_workers=1) as pool:
    future = pool.submit(load, settings)
    page = f"<body class={settings.theme}>"
    loaded = future.result()
print(loaded, settings.theme, page.startswith("<body"))
