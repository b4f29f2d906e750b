package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// A folder is the state of one API on disk, held by one process at a time,
// and what follows from it: the port to listen on, the certificate
// authority, the administrator's token, the kubeconfig.
type folder struct {
	path     string
	lock     *os.File
	listener net.Listener
	ca       authority
	token    string
}

// openFolder makes or finds the state, takes hold of it, and opens the port.
func openFolder(cfg config) (*folder, error) {
	if err := os.MkdirAll(cfg.dir, 0o700); err != nil {
		return nil, fmt.Errorf("-dir %s: %w", cfg.dir, err)
	}
	d := &folder{path: cfg.dir}
	if err := d.fill(cfg); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

func (d *folder) fill(cfg config) (err error) {
	if d.lock, err = lock(filepath.Join(d.path, "lock")); err != nil {
		return err
	}
	// Etcd's sockets lie in the folder under relative names: the length of a
	// socket's path is limited.
	if err := os.Chdir(d.path); err != nil {
		return err
	}
	if d.listener, err = listen(cfg, filepath.Join(d.path, "port")); err != nil {
		return err
	}
	if d.ca, err = loadAuthority(d.path); err != nil {
		return err
	}
	if d.token, err = loadToken(filepath.Join(d.path, "admin.token")); err != nil {
		return err
	}
	return d.writeKubeconfig(cfg)
}

func (d *folder) close() {
	if d.listener != nil {
		_ = d.listener.Close()
	}
	if d.lock != nil {
		_ = d.lock.Close() // and with it goes the lock
	}
}

func (d *folder) port() int { return d.listener.Addr().(*net.TCPAddr).Port }

func (d *folder) kubeconfig() string { return kubeconfigIn(d.path) }

func kubeconfigIn(dir string) string { return filepath.Join(dir, "kubeconfig") }

// lock keeps a second process out of the folder. The kernel drops it when this
// one ends, however that happens.
func lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the state folder must be writable: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder, _ := os.ReadFile(path)
		_ = f.Close()
		return nil, fmt.Errorf("another kubeapi (process %s) runs in %s: stop it, or choose another folder with -dir",
			strings.TrimSpace(string(holder)), filepath.Dir(path))
	}
	return f, errors.Join(f.Truncate(0), write(f, fmt.Sprintln(os.Getpid())))
}

func write(f *os.File, text string) error {
	_, err := f.WriteAt([]byte(text), 0)
	return err
}

// listen opens the port that cfg names, else the one of the last start, else
// any. The last one is in the kubeconfigs that are out there.
func listen(cfg config, remembered string) (net.Listener, error) {
	port := cfg.port
	if port == 0 {
		last, _ := os.ReadFile(remembered)
		port, _ = strconv.Atoi(strings.TrimSpace(string(last)))
	}
	l, err := net.Listen("tcp", net.JoinHostPort(cfg.bind, strconv.Itoa(port)))
	if err != nil && cfg.port == 0 {
		l, err = net.Listen("tcp", net.JoinHostPort(cfg.bind, "0"))
	}
	if err != nil {
		return nil, fmt.Errorf("-port %d: %w; choose another port, or 0 for any free one", cfg.port, err)
	}
	port = l.Addr().(*net.TCPAddr).Port
	if err := os.WriteFile(remembered, []byte(strconv.Itoa(port)+"\n"), 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// loadToken finds the administrator's token or makes it.
func loadToken(path string) (string, error) {
	old, err := os.ReadFile(path)
	if err == nil {
		return strings.TrimSpace(string(old)), nil
	}
	var b [16]byte
	_, _ = rand.Read(b[:])
	token := hex.EncodeToString(b[:])
	return token, os.WriteFile(path, []byte(token+"\n"), 0o600)
}

// writeKubeconfig writes the administrator's kubeconfig, and where the server
// listens on every address one more, by which the machine itself reaches it:
// out of a container through a published port.
func (d *folder) writeKubeconfig(cfg config) error {
	if net.ParseIP(cfg.bind).IsUnspecified() {
		if err := d.writeKubeconfigFor("127.0.0.1", d.kubeconfig()+".local"); err != nil {
			return err
		}
	}
	return d.writeKubeconfigFor(cfg.host, d.kubeconfig())
}

func (d *folder) writeKubeconfigFor(host, path string) error {
	const name = "metalbus"
	c := clientcmdapi.NewConfig()
	c.Clusters[name] = &clientcmdapi.Cluster{
		Server:                   "https://" + net.JoinHostPort(host, strconv.Itoa(d.port())),
		CertificateAuthorityData: d.ca.certificate,
	}
	c.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: d.token}
	c.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	c.CurrentContext = name
	return clientcmd.WriteToFile(*c, path)
}
