package metalbus

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/metalbus/metalbus/pkg/bus"
)

// folder is where an installation on a laptop keeps everything.
type folder string

// newFolder is the folder by its whole path, which other processes can use too.
func newFolder(dir string) (folder, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("data %q: %w", dir, err)
	}
	return folder(path), nil
}

func (f folder) path(name string) string { return filepath.Join(string(f), name) }

// The files of the folder.
func (f folder) log() string        { return f.path("metalbus.log") }
func (f folder) kubeapiLog() string { return f.path("kubeapi.log") }
func (f folder) kube() string       { return f.path("kube") }
func (f folder) nats() string       { return f.path("nats") }
func (f folder) notes() string      { return f.path("in-hand") }
func (f folder) machines() string   { return f.path("simulator.json") }
func (f folder) plan() string       { return f.path("plan.json") }
func (f folder) running() string    { return f.path("running.json") }
func (f folder) lockFile() string   { return f.path("lock") }

// defaultFolder is where people's programs keep their state.
func (t Tool) defaultFolder() string {
	if dir, ok := t.Env.Lookup("XDG_STATE_HOME"); ok && filepath.IsAbs(dir) {
		return filepath.Join(dir, name)
	}
	if home, ok := t.Env.Lookup("HOME"); ok && home != "" {
		return filepath.Join(home, ".local", "state", name)
	}
	return name + "-data"
}

// take makes the folder and keeps a second process out of it until release.
func (f folder) take() (release func(), err error) {
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return nil, fmt.Errorf("make the data folder: %w", err)
	}
	file, err := os.OpenFile(f.lockFile(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the data folder must be writable: %w", err)
	}
	switch err := lockFile(file); {
	case errors.Is(err, errors.ErrUnsupported):
		return nil, errors.Join(err, file.Close())
	case err != nil:
		holder, _ := os.ReadFile(f.lockFile())
		_ = file.Close()
		return nil, fmt.Errorf("process %s runs an installation in %s already: stop it, or choose another folder with --data",
			strings.TrimSpace(string(holder)), f)
	}
	if err := errors.Join(file.Truncate(0), writeAt(file, fmt.Sprintln(os.Getpid()))); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() { _ = file.Close() }, nil // and with it goes the lock
}

func writeAt(file *os.File, text string) error {
	_, err := file.WriteAt([]byte(text), 0)
	return err
}

// locked reports whether a process holds the lock of a file.
func locked(path string) bool {
	file, err := os.OpenFile(path, os.O_RDWR, 0) //nolint:gosec // in the data folder
	if err != nil {
		return false
	}
	defer file.Close()
	return lockFile(file) != nil
}

// plan is what an installation was begun with, and how far it was brought. A
// later run in the same folder goes by it.
type plan struct {
	// Simulator is the address that the hosts' BMC addresses name.
	Simulator string `json:"simulator"`
	Backend   string `json:"backend"`
	// Declared is how many hosts of the rack were declared to Kubernetes.
	Declared int `json:"declared"`
	// Demo: it was begun by a demo, and the next demo may remove it.
	Demo bool `json:"demo,omitempty"`
}

// readPlan is the plan of the folder; ok is false in a new one.
func (f folder) readPlan() (p plan, ok bool, err error) {
	ok, err = readJSON(f.plan(), &p)
	return p, ok, err
}

func (f folder) writePlan(p plan) error { return writeJSON(f.plan(), p) }

// running says how a running installation is reached.
type running struct {
	// Socket is where its NATS server is reached, if that is inside of it;
	// else it is by URLs, with Auth and TLS.
	Socket     string   `json:"socket,omitempty"`
	URLs       []string `json:"natsURLs,omitempty"`
	Auth       bus.Auth `json:"auth,omitzero"`
	TLS        bus.TLS  `json:"tls,omitzero"`
	APIPrefix  string   `json:"apiPrefix,omitempty"`
	Cluster    string   `json:"cluster"`
	Kubeconfig string   `json:"kubeconfig"`
	Simulator  string   `json:"simulator"`
}

// bus is how the installation's bus is reached, but for a socket.
func (r running) bus() bus.Config {
	return bus.Config{URLs: r.URLs, Auth: r.Auth, TLS: r.TLS, APIPrefix: r.APIPrefix, Cluster: r.Cluster}
}

// errNotRunning says that no installation runs in a folder.
var errNotRunning = errors.New("no installation runs there")

// readRunning says how the installation is reached that runs in the folder. It
// fails with errNotRunning if there is none, or not yet.
func (f folder) readRunning() (r running, err error) {
	found, err := readJSON(f.running(), &r)
	if err == nil && (!found || !locked(f.lockFile())) { // one that was killed leaves the file behind
		err = fmt.Errorf("%s: %w", f, errNotRunning)
	}
	return r, err
}

// newLog begins a log, and keeps that of the last run beside it.
func newLog(path string) (*os.File, error) {
	if err := os.Rename(path, path+".1"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("put the last run's log aside: %w", err)
	}
	return os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600) //nolint:gosec // in the data folder
}

func readJSON(path string, into any) (ok bool, err error) {
	data, err := os.ReadFile(path) //nolint:gosec // in the data folder
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return false, fmt.Errorf("%s is damaged: %w; choose another folder with --data, or remove it", path, err)
	}
	return true, nil
}

func writeJSON(path string, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return replaceFile(path, append(data, '\n'))
}
