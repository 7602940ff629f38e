# EXPECT: check-then-act | *visited* | 12, 14
"""Each page once: in the set or not?"""

import threading

visited = set()
fetched = []


def crawl(urls):
    for url in urls:
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
