// Package walkthroughs_test does what docs/walkthroughs says, command by command.
package walkthroughs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/metalbus/metalbus/integration/internal/lab"
	"github.com/metalbus/metalbus/integration/internal/programs"
)

var shared lab.Lab

// TestMain leaves the suite out where there is no kubectl, and says so: into the
// file that METALBUS_LEFT_OUT names, whose lines are counted, or by failing.
func TestMain(m *testing.M) {
	if _, err := exec.LookPath("kubectl"); err != nil {
		os.Exit(leaveOut(err))
	}
	os.Exit(shared.Run(m))
}

func leaveOut(why error) int {
	f, err := os.OpenFile(os.Getenv("METALBUS_LEFT_OUT"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		fmt.Fprintln(os.Stderr, "the walk-throughs need kubectl:", why)
		return 1
	}
	_, err = fmt.Fprintln(f, "left out: walkthroughs")
	if err = errors.Join(err, f.Close()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// patience is how long one walk-through may take while other work goes on.
const patience = 5 * time.Minute

// Every command of every walk-through works as it is written.
func TestWalkthroughs(t *testing.T) {
	root, err := programs.Root(".")
	if err != nil {
		t.Fatal(err)
	}
	docs := filepath.Join(root, "docs", "walkthroughs")
	paths, err := filepath.Glob(filepath.Join(docs, "*.md"))
	if err != nil || len(paths) < 10 {
		t.Fatalf("%d walk-throughs: %v", len(paths), err)
	}
	simulated, pretended := up(t), up(t, "--backend", "fixture")
	begin := blocks(t, filepath.Join(docs, "README.md"))
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".md")
		if name == "README" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := simulated
			if name == "firmware" { // simulated BMCs have none that can be changed
				data = pretended
			}
			walk(t, data, begin+blocks(t, path))
		})
	}
}

// up begins an installation, and says where it is.
func up(t *testing.T, flags ...string) (data string) {
	t.Helper()
	data = t.TempDir()
	p := shared.Start(t, "metalbus", []string{"METALBUS_DATA=" + data}, append([]string{"up", "--hosts", "8", "--delay", "0.2"}, flags...)...)
	lab.Eventually(t, patience, "see metalbus ready", func() error {
		said, err := os.ReadFile(p.Log)
		switch {
		case err != nil:
			return err
		case !strings.Contains(string(said), "Ready after"):
			return fmt.Errorf("so far it said:\n%s", said)
		default:
			return nil
		}
	})
	return data
}

// blocks are the commands of a document, in their order.
func blocks(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	in := false
	for line := range strings.Lines(string(text)) {
		switch {
		case strings.HasPrefix(line, "```"):
			in = strings.TrimSpace(line) == "```sh"
		case in:
			b.WriteString(line)
		}
	}
	if b.Len() == 0 {
		t.Fatalf("%s has no commands", path)
	}
	return b.String()
}

// walk runs commands in one shell, which ends at the first that fails.
func walk(t *testing.T, data, commands string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-eux")
	cmd.Stdin = strings.NewReader(commands)
	cmd.Dir = t.TempDir()
	cmd.WaitDelay = time.Second
	cmd.Env = append(os.Environ(), "METALBUS_DATA="+data, "PATH="+filepath.Dir(shared.Program("metalbus"))+string(filepath.ListSeparator)+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}
