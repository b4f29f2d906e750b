package ironic

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// material is everything that a connection needs beside its address.
type material struct {
	ca, cert, key      []byte
	username, password string
}

// String hides what is in it.
func (material) String() string { return "material" }

// sum tells one material from another.
func (m material) sum() [sha256.Size]byte {
	h := sha256.New()
	for _, part := range [][]byte{m.ca, m.cert, m.key, []byte(m.username), []byte(m.password)} {
		_, _ = fmt.Fprintf(h, "%d:", len(part)) // a hash takes everything
		_, _ = h.Write(part)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// read gathers the material as it is now. Files that do not exist count as not given.
func (c Config) read() (material, error) {
	var m material
	var errs []error
	for _, f := range []struct {
		to      *[]byte
		content []byte
		path    string
	}{
		{&m.ca, c.TLS.CA, c.TLS.CAFile}, {&m.cert, c.TLS.Cert, c.TLS.CertFile}, {&m.key, c.TLS.Key, c.TLS.KeyFile},
	} {
		var err error
		if *f.to = f.content; len(f.content) == 0 {
			*f.to, err = readFile(f.path)
		}
		errs = append(errs, err)
	}
	var err error
	m.username, m.password, err = c.Auth.read()
	return m, errors.Join(append(errs, err)...)
}

// read is the user name and password, both empty for no authentication.
func (a Auth) read() (username, password string, err error) {
	if a.Username != "" || a.Dir == "" {
		return a.Username, a.Password, nil
	}
	if _, err := os.Stat(a.Dir); errors.Is(err, fs.ErrNotExist) {
		return "", "", nil
	}
	u, userErr := readFile(filepath.Join(a.Dir, "username"))
	p, passErr := readFile(filepath.Join(a.Dir, "password"))
	if err := errors.Join(userErr, passErr); err != nil {
		return "", "", err
	}
	username, password = strings.TrimSpace(string(u)), strings.TrimSpace(string(p))
	if username == "" || password == "" {
		return "", "", fmt.Errorf("empty HTTP Basic Auth username/password: %s must hold the files username and password, or not exist", a.Dir)
	}
	return username, password, nil
}

func readFile(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	b, err := os.ReadFile(path) //nolint:gosec // the path is the operator's setting
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return b, err
}
