package bus

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
)

func TestCloudEventRoundTrip(t *testing.T) {
	e := cloudevents.New()
	e.SetID("u1/17/deploy.started")
	e.SetType(event.Type(event.SectionProvisioning, "deploy.started"))
	e.SetSource("/metal/c1/provisioner")
	e.SetSubject(`ns 1/hôst-"17"%20`)
	e.SetTime(time.Date(2026, 11, 29, 15, 0, 0, 123456789, time.UTC))
	e.SetDataSchema(event.DataSchema(event.SectionProvisioning))
	e.SetExtension("hostrev", int32(17))
	e.SetExtension("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	setJSON(&e, []byte(`{"state":{"phase":"deploying"}}`))
	m := nats.NewMsg("x")
	if err := writeEvent(t.Context(), &e, m); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"ce-specversion", "ce-id", "ce-type", "ce-source", "ce-subject", "ce-time", "ce-dataschema", "ce-hostrev", "ce-traceparent", "content-type"} {
		if len(m.Header[key]) != 1 {
			t.Errorf("header %s: %q", key, m.Header[key])
		}
	}
	got, err := readEvent(t.Context(), m.Header, m.Data)
	if err != nil {
		t.Fatal(err)
	}
	if err := got.Validate(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(e.String(), got.String()); diff != "" {
		t.Errorf("event (-sent +read):\n%s", diff)
	}
}

func TestHeadersCarryAnyText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "value")
		safe := escape(s)
		if strings.ContainsFunc(safe, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' }) {
			t.Fatalf("%q became %q, which no header can carry", s, safe)
		}
		if got := unescape(safe); got != s {
			t.Fatalf("%q came back as %q", s, got)
		}
	})
}

func TestUnescapeLeavesWhatIsNoEscape(t *testing.T) {
	for in, want := range map[string]string{"100%": "100%", "%zz": "%zz", "%4": "%4", "%41%4a": "AJ"} {
		if got := unescape(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func TestFieldsOfANewerVersionSurvive(t *testing.T) {
	for name, c := range map[string]struct {
		raw    string
		change func(*event.Provisioning)
		want   string
	}{
		"of the section": {
			`{"state":{"phase":"prepared","disks":{"count":2},"numbers":[1,12345678901234567890]}}`,
			func(p *event.Provisioning) { p.Phase = event.Deploying },
			`{"phase":"deploying","disks":{"count":2},"numbers":[1,12345678901234567890]}`,
		},
		"of the same operation": {
			`{"state":{"op":{"id":"deploy-7","kind":"deploy","claim":1,"startedAt":"2026-01-01T00:00:00Z","deadline":"soon"}}}`,
			func(p *event.Provisioning) { op := *p.Op; op.Claim = 2; p.Op = &op },
			`{"op":{"id":"deploy-7","kind":"deploy","claim":2,"startedAt":"2026-01-01T00:00:00Z","deadline":"soon"}}`,
		},
		"not of another operation": {
			`{"state":{"op":{"id":"deploy-7","kind":"deploy","startedAt":"2026-01-01T00:00:00Z","deadline":"soon"}}}`,
			func(p *event.Provisioning) { op := *p.Op; op.ID = "deploy-9"; p.Op = &op },
			`{"op":{"id":"deploy-9","kind":"deploy","startedAt":"2026-01-01T00:00:00Z"}}`,
		},
		"of an object that is the same": {
			`{"state":{"phase":"deployed","image":{"url":"http://a","signature":"abc"}}}`,
			func(p *event.Provisioning) { p.Attempts = 3 },
			`{"phase":"deployed","attempts":3,"image":{"url":"http://a","signature":"abc"}}`,
		},
		"not of an object that took its place": {
			`{"state":{"image":{"url":"http://a","signature":"abc"}}}`,
			func(p *event.Provisioning) { p.Image = v1alpha1.Image{URL: "http://b"} },
			`{"image":{"url":"http://b"}}`,
		},
		"of entries of a list": {
			`{"state":{"raid":{"softwareRAIDVolumes":[{"level":"1","chunk":64}]}}}`,
			func(p *event.Provisioning) { p.Attempts = 1 },
			`{"attempts":1,"raid":{"hardwareRAIDVolumes":null,"softwareRAIDVolumes":[{"level":"1","chunk":64}]}}`,
		},
		"never in place of what is known": {
			`{"state":{"attempts":5,"new":1}}`,
			func(p *event.Provisioning) { p.Attempts = 0 },
			`{"new":1}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := rewritten(t, c.raw, c.change)
			if diff := cmp.Diff(normal(t, c.want), normal(t, got)); diff != "" {
				t.Errorf("state (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("and cost nothing where there are none", func(t *testing.T) {
		if _, extra := readProvisioning(t, `{"state":{"phase":"prepared"},"change":{"reason":"x"}}`); extra != nil {
			t.Errorf("extra %s", extra)
		}
	})
}

func readProvisioning(t *testing.T, raw string) (event.Provisioning, []byte) {
	t.Helper()
	state, extra, err := readState(event.SectionProvisioning, []byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return state.(event.Provisioning), extra
}

// rewritten is the state after a version that does not know all of it changed it.
func rewritten(t *testing.T, raw string, change func(*event.Provisioning)) string {
	t.Helper()
	p, extra := readProvisioning(t, raw)
	if extra == nil {
		t.Fatal("the unknown fields were not noticed")
	}
	before := p
	change(&p)
	fresh, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	got, err := keepUnknown(before, extra, fresh)
	if err != nil {
		t.Fatal(err)
	}
	return string(got)
}

func normal(t *testing.T, text string) any {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestSecretsAreFoundByType(t *testing.T) {
	type credentials struct {
		User     string
		Password string `datapolicy:"password"`
	}
	type nested struct{ List []map[string]*credentials }
	for name, c := range map[string]struct {
		value  any
		secret bool
	}{
		"a tagged field":            {credentials{}, true},
		"one deep below":            {&nested{}, true},
		"a Kubernetes Secret":       {struct{ S *corev1.Secret }{}, true},
		"a reference to a Secret":   {corev1.SecretReference{}, false},
		"the sections of a host":    {event.Base{}, false},
		"the intent":                {event.Intent{}, false},
		"hardware":                  {v1alpha1.HardwareDetails{}, false},
		"a text, whatever it holds": {"password", false},
		"nothing":                   {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := secretIn(c.value); (got != "") != c.secret {
				t.Errorf("found %q", got)
			}
		})
	}
}

// A log that lost its end gives the same sequences to other events: what was read
// before must not be taken for what is there now.
func TestASequenceThatNamesAnotherEvent(t *testing.T) {
	b := &Bus{cfg: Config{Cluster: "c1"}, cache: newCache(8)}
	at := func(id, time, data string) stored {
		return stored{subject: "metal.c1.host.u1.power", seq: 17, data: []byte(data), header: nats.Header{
			"ce-specversion": {"1.0"}, "ce-id": {id}, "ce-time": {time}, "ce-hostrev": {"5"},
			"ce-type": {event.Type(event.SectionPower, event.PowerChanged)}, "ce-source": {event.Source("c1", event.SectionPower.Writer())},
		}}
	}
	for _, c := range []struct {
		m    stored
		want bool
	}{
		{at("u1/5/changed", "2026-11-30T12:00:00Z", `{"state":{"on":true}}`), true},
		{at("u1/5/changed", "2026-11-30T12:00:00Z", `{"state":{"on":true}}`), true},
		{at("u1/5/changed", "2026-11-30T12:07:00Z", `{"state":{"on":false}}`), false},
		{at("u1/6/changed", "2026-11-30T12:07:00Z", `{"state":{"on":true}}`), true},
	} {
		r, err := b.decodeRecord(c.m)
		if err != nil {
			t.Fatal(err)
		}
		if power, ok := r.state.(event.Power); !ok || power.On == nil || *power.On != c.want {
			t.Errorf("%s of %s: %+v, want on %t", c.m.header["ce-id"], c.m.header["ce-time"], r.state, c.want)
		}
	}
}
