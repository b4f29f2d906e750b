package bmcsim_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
)

type event struct {
	Context string
	Events  []struct {
		MessageID         string `json:"MessageId"`
		OriginOfCondition struct {
			ID string `json:"@odata.id"`
		}
	}
}

// nextEvent reads on to the next event of a stream.
func nextEvent(r *bufio.Reader) (event, error) {
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return event{}, err
		}
		if data, isData := strings.CutPrefix(line, "data: "); isData {
			var e event
			return e, json.Unmarshal([]byte(data), &e)
		}
	}
}

func openStream(t *testing.T, client *http.Client, base string, h *bmcsim.Host) *bufio.Reader {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/redfish/v1/EventService/SSE", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth(h.Credentials())
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("stream: %s, %s", resp.Status, resp.Header.Get("Content-Type"))
	}
	return bufio.NewReader(resp.Body)
}

func TestPowerChangesAreStreamed(t *testing.T) {
	s := rack(t, bmcsim.Config{Hosts: 2})
	srv := httptest.NewServer(s.Handler())
	t.Cleanup(srv.Close)
	a, b := s.Hosts()[0], s.Hosts()[1]
	stream := openStream(t, srv.Client(), srv.URL, a)
	asOwner(t, s, b).reset(http.StatusNoContent, b.SystemPath(), "On") // somebody else's
	for _, step := range []struct{ kind, message string }{{"On", "ResourceEvent.1.3.ResourcePoweredOn"}, {"ForceOff", "ResourceEvent.1.3.ResourcePoweredOff"}} {
		asOwner(t, s, a).reset(http.StatusNoContent, a.SystemPath(), step.kind)
		e, err := nextEvent(stream)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Events[0]; got.MessageID != step.message || got.OriginOfCondition.ID != a.SystemPath() {
			t.Errorf("event %+v, want %s of %s", got, step.message, a.SystemPath())
		}
	}
	a.SetFaults(bmcsim.Faults{Down: true})
	if _, err := nextEvent(stream); err == nil {
		t.Error("the stream outlived its BMC")
	}
}

func TestSubscribersArePosted(t *testing.T) {
	type post struct {
		secret string
		body   event
	}
	posts := make(chan post, 8)
	fail := true
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if fail { // the first delivery is tried again
			fail = false
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		b, _ := io.ReadAll(r.Body)
		p := post{secret: r.Header.Get("X-Secret")}
		if err := json.Unmarshal(b, &p.body); err != nil {
			t.Error(err)
		}
		posts <- p
	}))
	t.Cleanup(receiver.Close)
	s := rack(t, bmcsim.Config{Hosts: 1})
	h := s.Hosts()[0]
	c := asOwner(t, s, h)
	const subs = "/redfish/v1/EventService/Subscriptions"
	c.must(http.StatusBadRequest, http.MethodPost, subs, map[string]string{"Destination": "nowhere"})
	r := c.must(http.StatusCreated, http.MethodPost, subs, map[string]any{
		"Destination": receiver.URL, "Context": "ours", "Protocol": "Redfish", "HttpHeaders": []map[string]string{{"X-Secret": "canary"}},
	})
	c.reset(http.StatusNoContent, h.SystemPath(), "On")
	got := <-posts
	if got.secret != "canary" || got.body.Context != "ours" || got.body.Events[0].MessageID != "ResourceEvent.1.3.ResourcePoweredOn" {
		t.Errorf("posted %+v", got)
	}
	where := strings.TrimRight(r.header.Get("Location"), "/")
	if body := c.must(http.StatusOK, http.MethodGet, where, nil).body; body["HttpHeaders"] != nil {
		t.Errorf("the subscription shows its headers: %v", body)
	}
	for _, x := range h.Commands() {
		for _, v := range x.Args {
			if strings.Contains(v, "canary") {
				t.Errorf("the log has the headers: %v", x)
			}
		}
	}
	c.must(http.StatusNoContent, http.MethodPost, "/redfish/v1/EventService/Actions/EventService.SubmitTestEvent", map[string]string{})
	<-posts
	c.must(http.StatusNoContent, http.MethodDelete, where, nil)
	c.must(http.StatusNotFound, http.MethodDelete, where, nil)
	members, _ := c.must(http.StatusOK, http.MethodGet, subs, nil).dig("Members").([]any)
	if len(members) != 0 {
		t.Errorf("subscriptions left: %v", members)
	}
}

func TestServeEndsWithItsContextThoughStreamsAreOpen(t *testing.T) {
	s := rack(t, bmcsim.Config{Hosts: 1})
	h := s.Hosts()[0]
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	stream := openStream(t, http.DefaultClient, "http://"+l.Addr().String(), h)
	cancel()
	if _, err := nextEvent(stream); err == nil {
		t.Error("the stream goes on")
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("Serve: %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("Serve goes on")
	}
}

func TestServeTellsWhyItCannotServe(t *testing.T) {
	s := rack(t, bmcsim.Config{Hosts: 1})
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	if err := s.Hosts()[0].Serve(t.Context(), l); err == nil {
		t.Error("no error from a closed listener")
	}
}
