package metalbus_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metalbus/metalbus/services/metalbus"
)

// echo is a server that says everything back.
type echo struct{}

func (echo) InProcessConn() (net.Conn, error) {
	outside, inside := net.Pipe()
	go func() {
		defer inside.Close()
		b := make([]byte, 64)
		for {
			n, err := inside.Read(b)
			if err != nil {
				return
			}
			if _, err := inside.Write(b[:n]); err != nil {
				return
			}
		}
	}()
	return outside, nil
}

func TestAServerIsReachedThroughASocket(t *testing.T) {
	long := filepath.Join(t.TempDir(), strings.Repeat("x", 120))
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	tests := map[string]string{
		"a path":                  filepath.Join(t.TempDir(), "nats.sock"),
		"a path that is too long": filepath.Join(long, "nats.sock"),
	}
	for name, path := range tests {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(path, nil, 0o600); err != nil { // left by a process that was killed
				t.Fatal(err)
			}
			at, stop, err := metalbus.Socket(t.Context(), path, echo{})
			if err != nil {
				t.Fatal(err)
			}
			speak(t, at)
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(at); !os.IsNotExist(err) {
				t.Errorf("the socket is left behind: %v", err)
			}
		})
	}
}

func speak(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may open the socket: %v, %v", info.Mode(), err)
	}
	say(t, path, "hello")
	say(t, path, "once more")
}

func say(t *testing.T, path, text string) {
	t.Helper()
	c, err := metalbus.Dial(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, len(text))
	if _, err := c.Read(b); err != nil || string(b) != text {
		t.Errorf("said %q and heard %q (%v)", text, b, err)
	}
}
