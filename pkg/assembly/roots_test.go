package assembly

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Whoever renews the authority of the BMCs writes the file, and restarts nothing.
func TestRootsAreReadAgain(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	one := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	file := filepath.Join(t.TempDir(), "ca.pem")
	write := func(text []byte) {
		t.Helper()
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	write([]byte("nothing"))
	if _, err := openRoots(file, time.Now); err == nil {
		t.Error("a file without a certificate is taken")
	}
	write(one)
	r, err := openRoots(file, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	first := r.current()
	for _, step := range []struct {
		what string
		text []byte
		new  bool
	}{
		{"the same", one, false},
		{"half a file", one[:40], false},
		{"another", append([]byte("# renewed\n"), one...), true},
	} {
		write(step.text)
		if before := r.current(); before != first {
			t.Errorf("%s: it is read at each use", step.what)
		}
		now = now.Add(rereads)
		if got := r.current(); (got != first) != step.new || got == nil {
			t.Errorf("%s: new is %v", step.what, got != first)
		}
	}
	if r, err := openRoots("", time.Now); err != nil || r.current() != nil {
		t.Errorf("without a file it is not the system's: %v", err)
	}
}
