package metalbus

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	// kubeapiProgram is the program that plays the Kubernetes API.
	kubeapiProgram = "kubeapi"
	// readyPrefix begins the line by which it says that it is ready.
	readyPrefix = "ready KUBECONFIG="
	// kubeapiGrace is how long it may take to stop.
	kubeapiGrace = 20 * time.Second
)

// findKubeapi finds the program: as asked, else beside our own, else on the
// path of programs.
func findKubeapi(asked string) (string, error) {
	if asked != "" {
		path, err := exec.LookPath(asked)
		if err != nil {
			return "", fmt.Errorf("--kubeapi: %w", err)
		}
		return path, nil
	}
	if own, err := os.Executable(); err == nil {
		if path, err := exec.LookPath(filepath.Join(filepath.Dir(own), kubeapiProgram)); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(kubeapiProgram)
	if err != nil {
		return "", errors.New("the program kubeapi, which plays the Kubernetes API, is neither beside metalbus nor on the PATH: " +
			"make it with `make build`, name it with --kubeapi, or use a cluster of yours with --kubeconfig")
	}
	return path, nil
}

// kubeapi is the Kubernetes API as a child process. It ends with us, however we
// end: it reads a pipe from us until that is closed.
type kubeapi struct {
	log   string
	stdin io.Closer
	kill  func() error
	ready chan string // its kubeconfig; closed without one if it ended before
	ended chan struct{}
	err   error // once it has ended
}

// startKubeapi starts the program with its state in dir. What it complains
// about goes to the file log.
func startKubeapi(program, dir, log string) (*kubeapi, error) {
	file, err := newLog(log)
	if err != nil {
		return nil, err
	}
	defer file.Close()                                        // the child has its own
	cmd := exec.Command(program, "-dir", dir, "-stop-at-eof") //nolint:gosec,noctx // whoever started us names it; it outlives their context
	cmd.Stderr, cmd.SysProcAttr = file, apart()
	k := &kubeapi{log: log, ready: make(chan string, 1), ended: make(chan struct{})}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if k.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	k.kill = cmd.Process.Kill
	go func() {
		defer close(k.ended)
		k.listen(stdout)
		k.err = cmd.Wait()
	}()
	return k, nil
}

// listen reads what the child says until it has ended.
func (k *kubeapi) listen(stdout io.Reader) {
	defer close(k.ready)
	lines := bufio.NewScanner(stdout)
	told := false
	for lines.Scan() {
		if kubeconfig, ok := strings.CutPrefix(lines.Text(), readyPrefix); ok && !told {
			told = true
			k.ready <- kubeconfig
		}
	}
}

// await waits until the API is ready, and says where its kubeconfig is.
func (k *kubeapi) await(ctx context.Context) (kubeconfig string, err error) {
	select {
	case kubeconfig, ok := <-k.ready:
		if !ok {
			<-k.ended
			return "", k.trouble()
		}
		return kubeconfig, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// trouble says why it ended by itself.
func (k *kubeapi) trouble() error {
	text, _ := os.ReadFile(k.log)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	last := strings.Join(lines[max(0, len(lines)-3):], "\n  ")
	return fmt.Errorf("the Kubernetes API ended (%v); the end of %s:\n  %s", exit(k.err), k.log, last)
}

func exit(err error) string {
	if err == nil {
		return "without an error"
	}
	return err.Error()
}

// stop ends it and waits until it has stored everything.
func (k *kubeapi) stop() error {
	err := k.stdin.Close()
	select {
	case <-k.ended:
		return nil
	case <-time.After(kubeapiGrace):
	}
	err = errors.Join(err, k.kill())
	<-k.ended
	return errors.Join(fmt.Errorf("the Kubernetes API did not stop within %s and was killed", kubeapiGrace), err)
}
