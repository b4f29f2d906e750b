package bus

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// A server that vanished without a word, or froze, is found out by pings. A
// server that is cut off from its peers answers them, see reconnect.
const (
	pingEvery   = 2 * time.Second
	pingsMissed = 2
	dialFirst   = 250 * time.Millisecond
	dialMax     = 4 * time.Second
)

func (b *Bus) connect(ctx context.Context, process nats.InProcessConnProvider) error {
	opts, err := b.natsOptions(process)
	if err != nil {
		return err
	}
	urls, shown := strings.Join(b.cfg.URLs, ","), redacted(b.cfg.URLs)
	for wait := dialFirst; ; wait = min(2*wait, dialMax) {
		b.nc, err = nats.Connect(urls, opts...)
		if err == nil {
			b.state.connected(b.clock())
			return nil
		}
		if final(err) {
			return fmt.Errorf("connect to NATS at %s: %w: check the address, the credentials and the certificates", shown, err)
		}
		b.log.WarnContext(ctx, "NATS does not answer, trying on", keyError, err.Error())
		select {
		case <-ctx.Done():
			return fmt.Errorf("connect to NATS at %s: %w (%w)", shown, err, ctx.Err())
		case <-time.After(wait):
		}
	}
}

// redacted are the addresses without the credentials that they may hold.
func redacted(urls []string) string {
	shown := make([]string, len(urls))
	for i, text := range urls {
		if u, err := url.Parse(text); err == nil { // it was checked
			u.User = nil
			shown[i] = u.String()
		}
	}
	return strings.Join(shown, ",")
}

// final reports whether another try would end alike.
func final(err error) bool {
	var cert *tls.CertificateVerificationError
	return errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) || errors.Is(err, nats.ErrAuthRevoked) ||
		errors.Is(err, nats.ErrSecureConnRequired) || errors.Is(err, nats.ErrSecureConnWanted) ||
		errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) || errors.As(err, &cert)
}

func (b *Bus) natsOptions(process nats.InProcessConnProvider) ([]nats.Option, error) {
	opts := []nats.Option{
		nats.Name("metalbus " + b.cfg.Name + " " + b.cfg.Cluster),
		nats.CustomInboxPrefix("_INBOX_" + b.cfg.Name),
		nats.MaxReconnects(-1),
		nats.IgnoreAuthErrorAbort(), // credentials are rotated under a running service
		nats.ReconnectWait(dialFirst),
		nats.ReconnectJitter(dialFirst, dialFirst),
		nats.PingInterval(pingEvery),
		nats.MaxPingsOutstanding(pingsMissed),
		nats.ConnectHandler(func(*nats.Conn) { b.state.connected(b.clock()) }),
		nats.ReconnectHandler(func(*nats.Conn) { b.onReconnect() }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { b.onDisconnect(err) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			b.log.Warn("NATS reports an error", keyError, err.Error())
		}),
	}
	if process != nil {
		opts = append(opts, nats.InProcessServer(process))
	}
	auth, err := b.cfg.Auth.option()
	if err != nil {
		return nil, err
	}
	if auth != nil {
		opts = append(opts, auth)
	}
	if b.cfg.TLS.used() {
		opts = append(opts, b.cfg.TLS.options()...)
	}
	return opts, nil
}

func (b *Bus) onReconnect() {
	b.state.connected(b.clock())
	b.epoch.expire() // it may be another log now
	b.log.Info("connected to NATS again")
}

func (b *Bus) onDisconnect(err error) {
	b.state.disconnected(b.clock())
	if err != nil {
		b.log.Warn("lost the connection to NATS", keyError, err.Error())
	}
}

// reconnect goes to another server, since this one does not answer requests:
// it may be cut off from its peers, and would look connected for ever. At most
// once per Reply, however many requests failed.
func (b *Bus) reconnect(ctx context.Context) {
	if !b.state.mayReconnect(b.clock(), b.cfg.Timing.Reply) {
		return
	}
	b.log.WarnContext(ctx, "a request was not answered, connecting anew")
	b.m.reconnects.Inc()
	if err := b.nc.ForceReconnect(); err != nil {
		b.log.WarnContext(ctx, "connect anew", keyError, err.Error())
	}
}

// option reads the credentials at each connect.
func (a Auth) option() (nats.Option, error) {
	switch {
	case a.CredsFile != "":
		return nats.UserCredentials(a.CredsFile), nil
	case a.JWTFile != "":
		return nats.UserCredentials(a.JWTFile, a.NKeyFile), nil
	case a.NKeyFile != "":
		return nats.NkeyOptionFromSeed(a.NKeyFile)
	case a.UserFile != "":
		if _, err := readLine(a.PasswordFile); err != nil {
			return nil, fmt.Errorf("password file: %w", err)
		}
		return nats.UserInfoHandler(func() (user, password string) {
			user, _ = readLine(a.UserFile)
			password, _ = readLine(a.PasswordFile)
			return user, password
		}), nil
	default:
		return nil, nil
	}
}

func readLine(file string) (string, error) {
	data, err := os.ReadFile(file) //nolint:gosec // the operator names it
	return strings.TrimSpace(string(data)), err
}

// options read the certificates at each connect.
func (t TLS) options() []nats.Option {
	opts := []nats.Option{nats.Secure(&tls.Config{MinVersion: tls.VersionTLS13})}
	roots := func() (*x509.CertPool, error) {
		if t.CAFile == "" {
			return x509.SystemCertPool()
		}
		pool := x509.NewCertPool()
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, err
		}
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("CA file %q holds no certificate", t.CAFile)
		}
		return pool, nil
	}
	pair := func() (tls.Certificate, error) { return tls.LoadX509KeyPair(t.CertFile, t.KeyFile) }
	if t.CertFile == "" {
		pair = nil
	}
	return append(opts, nats.ClientTLSConfig(pair, roots))
}
