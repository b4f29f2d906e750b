package lab

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const (
	// grace is how long a process may take to stop when it is told to.
	grace = 20 * time.Second
	// lastLines is how much of a process's log a failed test shows.
	lastLines = 60
)

// A Process is a program of ours that runs for a test. What it writes goes to
// a file, whose end is shown when the test fails; go test -artifacts keeps it.
type Process struct {
	Name string
	Log  string // path

	cmd   *exec.Cmd
	stdin io.Closer
	done  chan struct{}
}

// Start runs one of our programs until the test ends. It inherits the
// environment of the tests and adds env to it, as "NAME=value".
func (l *Lab) Start(tb testing.TB, program string, env []string, args ...string) *Process {
	tb.Helper()
	p, err := start(l.Program(program), nextLog(tb, program), env, nil, args...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		p.end()
		p.report(tb)
	})
	return p
}

// nextLog is a file for the log of one more process of this test.
func nextLog(tb testing.TB, program string) string {
	tb.Helper()
	dir := tb.ArtifactDir()
	for n := 1; ; n++ {
		path := filepath.Join(dir, fmt.Sprintf("%s-%d.log", program, n))
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			return path
		}
	}
}

// start runs a program. Its standard output goes to the log as well, and to
// stdout if that is given.
func start(path, log string, env []string, stdout io.Writer, args ...string) (*Process, error) {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer file.Close() // the process has its own
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = file, file
	if stdout != nil {
		cmd.Stdout = stdout
	}
	cmd.SysProcAttr = dieWithParent()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &Process{Name: filepath.Base(path), Log: log, cmd: cmd, stdin: stdin, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // Exit tells it
	}()
	return p, nil
}

// PID is the process's number.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// ExitCode is that of an ended process; -1 for one that runs or was killed.
func (p *Process) ExitCode() int {
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	default:
		return -1
	}
}

// Stop tells the process to stop and waits until it has. A process that does
// not fails the test.
func (p *Process) Stop(tb testing.TB) {
	tb.Helper()
	p.signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(grace):
		tb.Errorf("%s did not stop within %s of SIGTERM", p.Name, grace)
		p.Kill()
	}
}

// Kill ends the process as a crash would, and waits until it is gone.
func (p *Process) Kill() {
	p.signal(syscall.SIGKILL)
	<-p.done
}

// Pause freezes the process, as a machine in trouble would; Resume thaws it.
func (p *Process) Pause() { p.signal(syscall.SIGSTOP) }

// Resume lets a paused process go on.
func (p *Process) Resume() { p.signal(syscall.SIGCONT) }

// CloseInput ends the process's standard input, as the end of the tests would.
func (p *Process) CloseInput() { _ = p.stdin.Close() }

func (p *Process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// end stops the process at the end of a test, by force if need be.
func (p *Process) end() {
	p.Resume()
	p.signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(grace):
		p.Kill()
	}
	p.CloseInput()
}

// report shows the end of the log of a failed test's process.
func (p *Process) report(tb testing.TB) {
	tb.Helper()
	if tb.Failed() {
		tb.Logf("%s (exit code %d), the end of its log:\n%s", p.Name, p.ExitCode(), p.tail())
	}
}

func (p *Process) tail() string {
	text, err := os.ReadFile(p.Log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(string(bytes.TrimSpace(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-lastLines):], "\n")
}

// awaitLine returns what follows prefix in the first line of r that has it, or
// an error if the process ends without it.
func (p *Process) awaitLine(r io.Reader, prefix string, patience time.Duration) (string, error) {
	found := make(chan string, 1)
	go func() {
		defer close(found)
		lines := bufio.NewScanner(r)
		var told atomic.Bool
		for lines.Scan() { // to the end, or the process would block on a full pipe
			if rest, ok := strings.CutPrefix(lines.Text(), prefix); ok && told.CompareAndSwap(false, true) {
				found <- rest
			}
		}
	}()
	select {
	case rest, ok := <-found:
		if ok {
			return rest, nil
		}
		<-p.done
		return "", fmt.Errorf("%s ended (exit code %d) before it was ready:\n%s", p.Name, p.ExitCode(), p.tail())
	case <-time.After(patience):
		p.Kill()
		return "", fmt.Errorf("%s was not ready within %s:\n%s", p.Name, patience, p.tail())
	}
}
