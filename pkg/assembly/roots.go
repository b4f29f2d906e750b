package assembly

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"os"
	"sync"
	"time"
)

// rereads is how often a file is looked at for changes.
const rereads = 10 * time.Second

// roots are the authorities in a file, as it is now.
type roots struct {
	file string
	now  func() time.Time

	mu      sync.Mutex
	text    []byte
	pool    *x509.CertPool
	checked time.Time
}

// openRoots reads the file of --bmc-ca-file. Without one there are no roots.
func openRoots(file string, now func() time.Time) (*roots, error) {
	r := &roots{file: file, now: now}
	if file == "" {
		return r, nil
	}
	return r, r.read()
}

// current are the authorities that count, nil for the system's. A file that is no
// good (half of it new, say) leaves them as they are; what is wrong with it shows
// when they no longer do.
func (r *roots) current() *x509.CertPool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file != "" && r.now().Sub(r.checked) >= rereads {
		_ = r.read()
	}
	return r.pool
}

func (r *roots) read() error {
	r.checked = r.now()
	text, err := os.ReadFile(r.file)
	if err != nil {
		return fmt.Errorf("bmc-ca-file: %w", err)
	}
	if r.pool != nil && bytes.Equal(text, r.text) {
		return nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return fmt.Errorf("bmc-ca-file %q holds no certificate in PEM format", r.file)
	}
	r.text, r.pool = text, pool
	return nil
}
