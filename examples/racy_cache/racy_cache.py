class Cache:
    def __init__(self, load):
        self.load = load
        self.items = {}
        self.loads = 0

    def get(self, key):
        if key not in self.items:
            self.loads += 1
            self.items[key] = self.load(key)
        return self.items[key]
