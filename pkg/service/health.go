package service

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Check reports whether something works; its error says what does not, and
// must not hold a secret.
type Check func(context.Context) error

// checkTime bounds all checks of one request together.
const checkTime = 5 * time.Second

// Health is the named checks of a process. It is safe for concurrent use.
type Health struct {
	mu    sync.Mutex
	alive map[string]Check
	ready map[string]Check
}

// NewHealth has no checks: all is well.
func NewHealth() *Health {
	return &Health{alive: map[string]Check{}, ready: map[string]Check{}}
}

// Alive adds a check whose failure means that the process has to be restarted.
// Trouble of others is none of its business.
func (h *Health) Alive(name string, c Check) { h.add(h.alive, name, c) }

// Ready adds a check whose failure means that the process cannot do its work now.
func (h *Health) Ready(name string, c Check) { h.add(h.ready, name, c) }

func (h *Health) add(to map[string]Check, name string, c Check) {
	h.mu.Lock()
	defer h.mu.Unlock()
	to[name] = c
}

// Handler serves /healthz and /readyz: 200 if every check passes, else 503,
// with a line a check. A process that is not alive is not ready.
func (h *Health) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		report(w, r, h.checks(h.alive))
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		report(w, r, h.checks(h.alive, h.ready))
	})
	return mux
}

func (h *Health) checks(sets ...map[string]Check) map[string]Check {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := map[string]Check{"ping": func(context.Context) error { return nil }}
	for _, set := range sets {
		maps.Copy(all, set)
	}
	return all
}

func report(w http.ResponseWriter, r *http.Request, checks map[string]Check) {
	ctx, cancel := context.WithTimeout(r.Context(), checkTime)
	defer cancel()
	code := http.StatusOK
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(checks)) {
		if err := checks[name](ctx); err != nil {
			code = http.StatusServiceUnavailable
			fmt.Fprintf(&text, "[-] %s: %v\n", name, err)
			continue
		}
		fmt.Fprintf(&text, "[+] %s\n", name)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text.String()))
}
