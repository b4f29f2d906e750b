package metalbus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
)

// maxSocketPath is what every system takes as the path of a socket.
const maxSocketPath = 100

// pipes gives connections to a server that listens on nothing.
type pipes interface {
	InProcessConn() (net.Conn, error)
}

// socket lets other processes of the same user reach a NATS server inside of
// this one. Nobody else may open the file, so no password is needed.
type socket struct {
	path     string
	dir      string // made for it, "" if none was
	server   pipes
	listener net.Listener
	open     sync.WaitGroup
}

// openSocket listens at path, or in a folder of its own where that is too long.
func openSocket(ctx context.Context, path string, server pipes) (*socket, error) {
	s := &socket{path: path, server: server}
	if len(path) > maxSocketPath {
		dir, err := os.MkdirTemp("", name+"-")
		if err != nil {
			return nil, fmt.Errorf("make a folder for the socket: %w", err)
		}
		s.dir, s.path = dir, filepath.Join(dir, "nats.sock")
	}
	_ = os.Remove(s.path) // of a process that was killed
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", s.path)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the socket: %w", err), s.removeDir())
	}
	s.listener = l
	if err := os.Chmod(s.path, 0o600); err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.open.Go(s.accept)
	return s, nil
}

func (s *socket) accept() {
	for {
		outside, err := s.listener.Accept()
		if err != nil {
			return // it was closed
		}
		inside, err := s.server.InProcessConn()
		if err != nil {
			_ = outside.Close() // the server is going down
			continue
		}
		go join(outside, inside)
	}
}

// join hands on what comes from either side until one of them ends.
func join(a, b net.Conn) {
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1]) // its end is all that matters
			_, _ = a.Close(), b.Close()
		})
	}
	both.Wait()
}

func (s *socket) close() error {
	err := s.listener.Close()
	s.open.Wait()
	return errors.Join(err, s.removeDir())
}

func (s *socket) removeDir() error {
	if s.dir == "" {
		return nil
	}
	return os.RemoveAll(s.dir)
}

// dial is a way into such a server from another process.
type dial string

// InProcessConn is a connection through the socket.
func (d dial) InProcessConn() (net.Conn, error) { return net.Dial("unix", string(d)) }
