"""A Bloom filter of the URLs that the crawler has seen."""
import zlib


class Bloom:
    def __init__(self, bits=1 << 16, hashes=3):
        self.size = bits
        self.hashes = hashes
        self.bits = bytearray(bits // 8)

    def _places(self, item):
        data = item.encode()
        for salt in range(self.hashes):
            yield zlib.crc32(data, salt * 7919) % self.size

    def add(self, item):
        for place in self._places(item):
            self.bits[place >> 3] |= 1 << (place & 7)

    def __contains__(self, item):
        return all(self.bits[p >> 3] >> (p & 7) & 1 for p in self._places(item))


seen = Bloom()
