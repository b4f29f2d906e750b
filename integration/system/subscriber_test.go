package system_test

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/cloudevents/sdk-go/v2/binding/spec"
	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/metalbus/metalbus/integration/internal/plant"
)

// Somebody who has a NATS client, the CloudEvents SDK and docs/events.md, and
// nothing of ours, can read a host's whole way: CloudEvents 1.0 in binary mode,
// with a number that has no gap.
func TestAStrangerReadsTheEvents(t *testing.T) {
	p := newPlant(t)
	p.Start(t, 1)
	h, _ := p.Declare(t, plant.WithImage)
	uid := string(p.Await(t, h.Name, "in use", plant.InUse).Now.UID)
	p.Delete(t, h.Name)
	p.Await(t, h.Name, "gone", plant.Gone)

	var types []string
	last := 0
	subscribe(t, p.NATS.URL, "METAL_HISTORY", "metal.plant.host."+uid+".*", func(e *cloudevents.Event) bool {
		if err := e.Validate(); err != nil || e.SpecVersion() != "1.0" {
			t.Errorf("event %s, version %s: %v", e.ID(), e.SpecVersion(), err)
		}
		if e.Subject() != p.Namespace+"/"+h.Name || e.Extensions()["hostuid"] != uid || e.Time().IsZero() || e.DataContentType() != "application/json" {
			t.Errorf("event %s is not about the host, or lacks a time or a content type: %s", e.ID(), e)
		}
		last++
		if rev := e.Extensions()["hostrev"]; rev != strconv.Itoa(last) {
			t.Errorf("event %s has hostrev %v, want %d", e.ID(), rev, last)
		}
		var data struct {
			State map[string]any `json:"state"`
		}
		if err := e.DataAs(&data); err != nil || len(data.State) == 0 {
			t.Errorf("event %s has no state: %v", e.ID(), err)
		}
		types = append(types, strings.TrimSuffix(strings.TrimPrefix(e.Type(), "io.metalbus.host."), ".v1"))
		return strings.HasSuffix(e.Type(), ".forgotten.v1")
	})
	for _, want := range []string{
		"intent.created", "registration.enroll.succeeded", "inspection.inspect.succeeded", "provisioning.prepare.succeeded",
		"provisioning.deploy.succeeded", "intent.deleting", "provisioning.undeploy.succeeded", "intent.forgotten",
	} {
		types = through(types, want)
		if types == nil {
			t.Fatalf("there is no %s where it should be", want)
		}
	}
}

// through is what follows a type in a list of them, nil if it is not there.
func through(types []string, want string) []string {
	for i, got := range types {
		if got == want {
			return append([]string{}, types[i+1:]...)
		}
	}
	return nil
}

// subscribe reads the events of a stream, in order, until take has seen the
// last that it wants.
func subscribe(t *testing.T, server, stream, subject string, take func(*cloudevents.Event) (last bool)) {
	t.Helper()
	js := stranger(t, server)
	c, err := js.OrderedConsumer(t.Context(), stream, jetstream.OrderedConsumerConfig{FilterSubjects: []string{subject}})
	if err != nil {
		t.Fatal(err)
	}
	messages, err := c.Messages()
	if err != nil {
		t.Fatal(err)
	}
	defer messages.Stop()
	for {
		m, err := messages.Next(jetstream.NextContext(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		e, err := decode(m)
		if err != nil {
			t.Fatalf("%s: %v", m.Subject(), err)
		}
		if take(e) {
			return
		}
	}
}

// decode reads a CloudEvent in binary mode: attributes are headers, each with
// its value percent-encoded.
func decode(m jetstream.Msg) (*cloudevents.Event, error) {
	version := spec.WithPrefix("ce-").Version(m.Headers().Get("ce-specversion"))
	if version == nil {
		return nil, fmt.Errorf("not a CloudEvent: %v", m.Headers())
	}
	e := &cloudevents.Event{Context: version.NewContext(), DataEncoded: m.Data()}
	e.SetDataContentType(m.Headers().Get("content-type"))
	for key := range m.Headers() {
		name, ok := strings.CutPrefix(key, "ce-")
		if !ok {
			continue
		}
		text, err := url.PathUnescape(m.Headers().Get(key))
		if err != nil {
			return nil, err
		}
		if a := version.Attribute(key); a != nil {
			err = a.Set(e.Context, text)
		} else {
			err = e.Context.SetExtension(name, text)
		}
		if err != nil {
			return nil, fmt.Errorf("header %s: %w", key, err)
		}
	}
	return e, nil
}

// stranger is a JetStream client that knows nothing of us.
func stranger(tb testing.TB, url string) jetstream.JetStream {
	tb.Helper()
	nc, err := nats.Connect(url)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		tb.Fatal(err)
	}
	return js
}
