package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"regexp"
	"strings"
	"time"
)

// image is a disk image: big enough to be one, small enough for hundreds of
// downloads.
func image() []byte { return bytes.Repeat([]byte("a simulated disk image\n"), 40000) }

// firmware is what the names of firmware files are like.
var firmware = regexp.MustCompile(`^(bios|bmc|nic)-[0-9][0-9A-Za-z.]*\.[a-z]+$`)

// files are the images that machines and Ironic ask for.
func files(ironic string) http.Handler {
	raw := image()
	sum := sha256.Sum256(raw)
	fixed := map[string][]byte{
		"disk.raw":           raw,
		"disk.raw.sha256sum": []byte(hex.EncodeToString(sum[:]) + "  disk.raw\n"),
		"bad.raw.sha256sum":  []byte(strings.Repeat("0", 2*sha256.Size) + "  disk.raw\n"),
		"agent.iso":          []byte("ipa-api-url=" + ironic + "\nipa-inspection-collectors=default\n"),
		"old-agent.iso":      []byte("ipa-api-url=" + ironic + "\n"), // for an Ironic that takes no reports
		"live.iso":           bytes.Repeat([]byte("a live image\n"), 400),
		"data.iso":           bytes.Repeat([]byte("data\n"), 1000),
		"esp.img":            bytes.Repeat([]byte("a boot loader\n"), 400),
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/files/")
		b, there := fixed[name]
		if !there && firmware.MatchString(name) {
			b, there = []byte("firmware "+name+"\n"), true
		}
		if !there {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/octet-stream")
		http.ServeContent(w, r, name, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), bytes.NewReader(b))
	})
}
