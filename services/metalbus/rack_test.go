package metalbus_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
	"github.com/metalbus/metalbus/pkg/service"
	"github.com/metalbus/metalbus/services/metalbus"
)

// pipe is a standard output that tells when it was closed.
type pipe struct {
	*io.PipeWriter
}

// sim runs `metalbus sim` until stop, and returns its manifests and its address.
func sim(t *testing.T, args ...string) (manifests, url string, stop func()) {
	t.Helper()
	out, in := io.Pipe()
	complaints := &lines{}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		ended <- metalbus.Tool{Program: "metalbus", Env: service.Environment{
			Args:   append([]string{"sim", "--listen", "127.0.0.1:0", "--delay", "0", "--manifests", "-"}, args...),
			Lookup: func(string) (string, bool) { return "", false }, Now: time.Now, Out: pipe{in}, Err: complaints,
		}}.Execute(ctx)
		_ = in.Close()
	}()
	text, err := io.ReadAll(out) // it is closed once the manifests are written
	if err != nil {
		t.Fatal(err)
	}
	said := complaints.await(t, "answer at ")
	url, _, _ = strings.Cut(said, ";")
	return string(text), url, func() {
		cancel()
		if code := <-ended; code != 0 {
			t.Errorf("exit code %d: %s", code, complaints.text())
		}
	}
}

// lines is output that can be waited for.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// await waits for a text, and returns what follows it.
func (l *lines) await(t *testing.T, text string) string {
	t.Helper()
	for deadline := time.After(20 * time.Second); ; {
		if _, after, ok := strings.Cut(l.text(), text); ok {
			return after
		}
		select {
		case <-deadline:
			t.Fatalf("no %q in:\n%s", text, l.text())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func TestARackKeepsItsMachines(t *testing.T) {
	state := filepath.Join(t.TempDir(), "rack.json")
	manifests, url, stop := sim(t, "--hosts", "2", "--profile", "dell", "--state", state, "-n", "metal", "--image", "http://192.0.2.9/live.iso")
	for want, times := range map[string]int{"kind: BareMetalHost": 2, "kind: Secret": 2, "namespace: metal": 4, "format: live-iso": 2, url: 2} {
		if got := strings.Count(manifests, want); got != times {
			t.Errorf("%d times %q in the manifests, want %d:\n%s", got, want, times, manifests)
		}
	}
	var before bmcsim.View
	get(t, url+"/sim/hosts/sim-1", &before)
	powerOn(t, url, manifests, before.ID)
	await(t, "the machine to run", func() bool { get(t, url+"/sim/hosts/sim-1", &before); return before.Power == "On" && before.Boots == 1 })
	stop()

	_, url, stop = sim(t, "--hosts", "3", "--state", state)
	defer stop()
	var after bmcsim.View
	get(t, url+"/sim/hosts/sim-1", &after)
	if after.ID != before.ID || after.Power != "On" || after.Boots != 1 {
		t.Errorf("the machine was %+v and is %+v", before, after)
	}
	var all []bmcsim.View
	get(t, url+"/sim/hosts", &all)
	if len(all) != 3 {
		t.Errorf("%d hosts, want one more than before", len(all))
	}
	info, err := os.Stat(state)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the state holds passwords: %v, %v", info.Mode(), err)
	}
}

func TestMachinesCanBeMadeToFail(t *testing.T) {
	_, url, stop := sim(t, "--hosts", "1")
	defer stop()
	for body, want := range map[string]int{`{"refusePower": true}`: http.StatusOK, `{"explode": true}`: http.StatusBadRequest, `x`: http.StatusBadRequest} {
		if got := send(t, http.MethodPut, url+"/sim/hosts/sim-1/faults", "", "", body); got != want {
			t.Errorf("faults %s: %d, want %d", body, got, want)
		}
	}
	var v bmcsim.View
	get(t, url+"/sim/hosts/sim-1", &v)
	if !v.Faults.RefusePower {
		t.Error("the fault is not in force")
	}
	if got := send(t, http.MethodGet, url+"/sim/hosts/sim-9", "", "", ""); got != http.StatusNotFound {
		t.Errorf("a host that is not there: %d", got)
	}
	if got := send(t, http.MethodGet, url+"/images/live.iso", "", "", ""); got != http.StatusOK {
		t.Errorf("the image: %d", got)
	}
}

// powerOn switches a machine on as a client of its BMC.
func powerOn(t *testing.T, url, manifests, id string) {
	t.Helper()
	_, after, _ := strings.Cut(manifests, "password: ")
	password, _, _ := strings.Cut(after, "\n")
	code := send(t, http.MethodPost, url+"/redfish/v1/Systems/"+id+"/Actions/ComputerSystem.Reset", "admin", strings.Trim(password, `"`), `{"ResetType": "On"}`)
	if code >= 300 {
		t.Fatalf("power on: %d", code)
	}
}

func send(t *testing.T, method, url, user, password, body string) (code int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if user != "" {
		req.SetBasicAuth(user, password)
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

func get(t *testing.T, url string, into any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		t.Fatal(err)
	}
}

func await(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for !cond() {
		select {
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func TestHostsAreGivenANameThatStays(t *testing.T) {
	tests := map[string]string{
		"127.0.0.1:8000": "127.0.0.1", "rack:8000": "rack", ":8000": "127.0.0.1", "0.0.0.0:8000": "127.0.0.1", "[::]:8000": "127.0.0.1", "[::1]:80": "::1",
	}
	for listen, want := range tests {
		if got := metalbus.Reachable(listen); got != want {
			t.Errorf("%s: %s, want %s", listen, got, want)
		}
	}
}
