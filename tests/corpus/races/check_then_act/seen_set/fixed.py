# EXPECT: clean
"""Each page once: in the set or not?"""

import threading

visited = set()
visited_lock = threading.Lock()
fetched = []


def crawl(urls):
    for url in urls:
        with visited_lock:
            if url in visited:
                continue
            visited.add(url)
        fetched.append(url)


spiders = [threading.Thread(target=crawl, args=(["/", "/about"],)) for _ in range(2)]
for spider in spiders:
    spider.start()
for spider in spiders:
    spider.join()
print(sorted(set(fetched)))
