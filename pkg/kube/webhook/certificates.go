package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// The delay after a certificate could not be had grows from firstRetry to
// lastRetry.
const (
	firstRetry = 500 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// certificates has the certificate to show.
type certificates struct {
	source  source
	log     *slog.Logger
	expires prometheus.Gauge
	shown   atomic.Pointer[tls.Certificate]
}

// source is where certificates come from.
type source interface {
	// fetch is the certificate to show now.
	fetch(ctx context.Context) (*tls.Certificate, error)
	// every is how often to fetch though nothing is known to have changed.
	every() time.Duration
	// watch calls changed whenever fetch may bring another one, until ctx ends.
	watch(ctx context.Context, changed func())
}

// current is the certificate to show; it has its Leaf.
func (c *certificates) current() (*tls.Certificate, error) {
	if shown := c.shown.Load(); shown != nil {
		return shown, nil
	}
	return nil, errors.New("the webhook has no certificate yet")
}

// keep fetches the certificate, and again whenever it may be another one, until
// ctx ends. What can not be had is tried again; meanwhile the old one is shown.
func (c *certificates) keep(ctx context.Context) {
	changed := make(chan struct{}, 1)
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() {
		c.source.watch(ctx, func() {
			select {
			case changed <- struct{}{}:
			default: // it is known already
			}
		})
	})
	retry, complaint := firstRetry, ""
	for ctx.Err() == nil {
		pause := c.source.every()
		err := c.refresh(ctx)
		switch {
		case err == nil:
			retry, complaint = firstRetry, ""
		case ctx.Err() == nil:
			pause, retry = retry, min(2*retry, lastRetry)
			if err.Error() != complaint {
				c.log.Warn("the certificate of the webhook could not be kept up to date; it is tried again", keyError, err)
			}
			complaint = err.Error()
		}
		wait(ctx, changed, pause)
	}
}

func wait(ctx context.Context, changed <-chan struct{}, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-changed:
	case <-timer.C:
	}
}

func (c *certificates) refresh(ctx context.Context) error {
	fetched, err := c.source.fetch(ctx)
	if err != nil {
		return err
	}
	old := c.shown.Swap(fetched)
	if old == nil || !bytes.Equal(old.Leaf.Raw, fetched.Leaf.Raw) {
		c.expires.Set(float64(fetched.Leaf.NotAfter.Unix()))
		c.log.Info("the webhook has a new certificate", keyExpires, fetched.Leaf.NotAfter)
	}
	return nil
}

// filesEvery is how often files are looked at. Their owner renews them weeks
// before they run out.
const filesEvery = 10 * time.Second

// files are a certificate and its key in a folder, made and renewed by
// somebody else.
type files struct{ folder string }

func (f *files) every() time.Duration { return filesEvery }

// watch waits for the end: looking often is simpler, and a mounted Secret
// changes by a swap of links that watches of files miss.
func (f *files) watch(ctx context.Context, _ func()) { <-ctx.Done() }

func (f *files) fetch(context.Context) (*tls.Certificate, error) {
	cert, err := os.ReadFile(filepath.Join(f.folder, "tls.crt"))
	if err != nil {
		return nil, fmt.Errorf("read the certificate in webhook-cert-dir: %w", err)
	}
	key, err := os.ReadFile(filepath.Join(f.folder, "tls.key"))
	if err != nil {
		return nil, fmt.Errorf("read the key in webhook-cert-dir: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("tls.crt and tls.key in %s: %w", f.folder, err)
	}
	return &pair, nil
}
