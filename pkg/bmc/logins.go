package bmc

import (
	"slices"
	"sync"
)

// maxFailedLogins bounds the memory of failed logins; the oldest is forgotten first.
const maxFailedLogins = 1 << 16

// failedLogins are the credentials that BMCs have refused, oldest first in order.
type failedLogins struct {
	mu    sync.Mutex
	keys  map[loginKey]struct{}
	order []loginKey
}

func (f *failedLogins) has(k loginKey) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, known := f.keys[k]
	return known
}

func (f *failedLogins) add(k loginKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, known := f.keys[k]; known {
		return
	}
	if f.keys == nil {
		f.keys = map[loginKey]struct{}{}
	}
	if len(f.order) == maxFailedLogins {
		delete(f.keys, f.order[0])
		f.order = f.order[1:]
	}
	f.keys[k] = struct{}{}
	f.order = append(f.order, k)
}

func (f *failedLogins) forget(k loginKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.keys, k)
	f.order = slices.DeleteFunc(f.order, func(x loginKey) bool { return x == k })
}
