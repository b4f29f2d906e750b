package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"
)

// image is a disk image: big enough to be one, small enough for hundreds of
// downloads.
func image() []byte { return bytes.Repeat([]byte("a simulated disk image\n"), 40000) }

// firmware is what the names of firmware files are like.
var firmware = regexp.MustCompile(`^(bios|bmc|nic)-[0-9][0-9A-Za-z.]*\.[a-z]+$`)

// files are the images that machines and Ironic ask for: those that are always
// there, and those that tests have brought.
type files struct {
	fixed map[string][]byte

	mu      sync.Mutex
	brought map[string][]byte
}

func newFiles(ironic string) *files {
	raw := image()
	sum := sha256.Sum256(raw)
	return &files{brought: map[string][]byte{}, fixed: map[string][]byte{
		"disk.raw":           raw,
		"disk.raw.sha256sum": []byte(hex.EncodeToString(sum[:]) + "  disk.raw\n"),
		"bad.raw.sha256sum":  []byte(strings.Repeat("0", 2*sha256.Size) + "  disk.raw\n"),
		"agent.iso":          []byte("ipa-api-url=" + ironic + "\nipa-inspection-collectors=default\n"),
		"live.iso":           bytes.Repeat([]byte("a live image\n"), 400),
		"data.iso":           bytes.Repeat([]byte("data\n"), 1000),
		"esp.img":            bytes.Repeat([]byte("a boot loader\n"), 400),
	}}
}

func (f *files) routes(mux *http.ServeMux) {
	mux.HandleFunc("GET /files/{name}", f.get) // HEAD as well
	mux.HandleFunc("PUT /control/files/{name}", f.put)
}

func (f *files) get(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	b, there := f.fixed[name]
	if !there {
		f.mu.Lock()
		b, there = f.brought[name]
		f.mu.Unlock()
	}
	if !there && firmware.MatchString(name) {
		b, there = []byte("firmware "+name+"\n"), true
	}
	if !there {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, name, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), bytes.NewReader(b))
}

func (f *files) put(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.brought[r.PathValue("name")] = b
}
