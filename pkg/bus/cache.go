package bus

import "sync"

// cache keeps decoded events by their sequence in METAL_HOST, which names one
// event for as long as the log does not lose its end: who reads compares. It holds two generations; what is used moves to the young
// one, and when that is full the old one goes.
type cache struct {
	mu         sync.Mutex
	limit      int
	young, old map[uint64]record
}

func newCache(limit int) *cache {
	return &cache{limit: limit, young: map[uint64]record{}, old: map[uint64]record{}}
}

func (c *cache) get(seq uint64) (record, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r, ok := c.young[seq]; ok {
		return r, true
	}
	r, ok := c.old[seq]
	if ok {
		c.add(seq, r)
	}
	return r, ok
}

func (c *cache) put(seq uint64, r record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(seq, r)
}

func (c *cache) add(seq uint64, r record) {
	if len(c.young) >= c.limit {
		c.old, c.young = c.young, make(map[uint64]record, c.limit)
	}
	c.young[seq] = r
}
