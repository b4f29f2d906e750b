package bus_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/bus/bustest"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

func TestAHostThatIsNotThere(t *testing.T) {
	b := bustest.New(t)
	if h := bustest.Load(t, b, "nobody"); h.Exists() || h.UID != "nobody" {
		t.Errorf("host %+v", h)
	}
}

func TestLoadWithoutStreamsSaysWhatToDo(t *testing.T) {
	b := bustest.Connect(t, bus.Config{Cluster: bustest.Cluster, Name: "test", Timing: bustest.Timing()}, bus.WithServer(bustest.Server(t)))
	if _, err := b.Load(t.Context(), "u1"); !errors.Is(err, bus.ErrNotInitialized) {
		t.Errorf("load: %v", err)
	}
	if _, err := b.Append(t.Context(), lifecycle.Host{UID: "u1"}, created("u1")); !errors.Is(err, bus.ErrNotInitialized) {
		t.Errorf("append: %v", err)
	}
}

func TestSnapshotsShowEveryRevision(t *testing.T) {
	b := bustest.New(t)
	var want []lifecycle.Host
	h := bustest.Append(t, b, "u1", bustest.The(created("u1")))
	want = append(want, h)
	for i := range 10 {
		h = bustest.Append(t, b, "u1", bustest.The(observed(i%2 == 0)))
		want = append(want, h)
		bustest.Append(t, b, fmt.Sprintf("other%d", i), bustest.The(created("x")))
	}
	h = bustest.Append(t, b, "u1", bustest.The(enrolled().Fact))
	want = append(want, h)
	for _, after := range []uint64{0, 1, 5, 11, 12, 13} {
		got, err := b.Snapshots(t.Context(), bustest.Load(t, b, "u1"), after)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want[min(after, 12):], got, cmp.AllowUnexported(lifecycle.Host{})); diff != "" && len(want[min(after, 12):])+len(got) > 0 {
			t.Errorf("after %d (-want +got):\n%s", after, diff)
		}
	}
}

// Whoever has read nothing before, and whoever reads what lacks the header that says
// where the section's event before is, sees the same.
func TestSnapshotsForANewcomer(t *testing.T) {
	old := bustest.Server(t)
	b := bustest.On(t, old, "test")
	facts := []func(lifecycle.Host) lifecycle.Fact{
		bustest.The(created("u1")), bustest.The(lifecycle.Started{Kind: event.Enroll, Step: "create"}), bustest.The(lifecycle.Accepted{Kind: event.Enroll}),
		bustest.The(observed(true)), bustest.The(enrolled().Fact), again, bustest.The(observed(false)), bustest.The(lifecycle.Skipped{}),
	}
	var want []lifecycle.Host
	for _, f := range facts {
		want = append(want, bustest.Append(t, b, "u1", f))
		bustest.Append(t, b, "u2", f)
	}
	snapshots := func(t *testing.T, b *bus.Bus, without ...string) {
		t.Helper()
		got, err := b.Snapshots(t.Context(), bustest.Load(t, b, "u1"), 0)
		if err != nil {
			t.Fatal(err)
		}
		unsaid := cmp.FilterPath(func(p cmp.Path) bool { return slices.Contains(without, p.Last().String()) }, cmp.Ignore())
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(lifecycle.Host{}), unsaid); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	t.Run("a newcomer", func(t *testing.T) { snapshots(t, bustest.On(t, old, "newcomer")) })
	t.Run("a log of an older version", func(t *testing.T) {
		s := bustest.Server(t)
		b := bustest.On(t, s, "newcomer")
		_, from := raw(t, old)
		_, to := raw(t, s)
		stream, err := from.Stream(t.Context(), bus.StreamHost)
		if err != nil {
			t.Fatal(err)
		}
		for seq := range uint64(2 * len(facts)) {
			m, err := stream.GetMsg(t.Context(), seq+1)
			if err != nil {
				t.Fatal(err)
			}
			m.Header.Del("Metalbus-Section-Before")
			if _, err := to.PublishMsg(t.Context(), &nats.Msg{Subject: m.Subject, Header: m.Header, Data: m.Data}); err != nil {
				t.Fatal(err)
			}
		}
		snapshots(t, b, ".Before", ".First", ".Epoch")
	})
}

// What came from the base of a restored host is in all of its snapshots.
func TestSnapshotsOfARestoredHost(t *testing.T) {
	b := bustest.New(t)
	h, err := b.Append(t.Context(), lifecycle.Host{UID: "u1", Rev: 17}, restored(lifecycle.Host{UID: "u1"}, base(17)))
	if err != nil {
		t.Fatal(err)
	}
	for _, on := range []bool{false, true, false} {
		h = bustest.Append(t, b, "u1", bustest.The(observed(on)))
	}
	got, err := b.Snapshots(t.Context(), h, 17)
	if err != nil {
		t.Fatal(err)
	}
	var power []bool
	for _, s := range got {
		power = append(power, *s.Power.On)
	}
	if diff := cmp.Diff([]bool{true, false, true, false}, power); diff != "" {
		t.Errorf("power (-want +got):\n%s", diff)
	}
}

func TestSnapshotsGoBackAsFarAsTheLog(t *testing.T) {
	b := bustest.New(t)
	bustest.Append(t, b, "u1", bustest.The(created("u1")))
	for i := range 150 {
		bustest.Append(t, b, "u1", bustest.The(observed(i%2 == 0)))
	}
	got, err := b.Snapshots(t.Context(), bustest.Load(t, b, "u1"), 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) < 60 {
		t.Errorf("%d snapshots", len(got))
	}
	for i, h := range got {
		if h.Rev != got[0].Rev+uint64(i) || h.Power.On == nil || h.Intent.Name == "" {
			t.Errorf("snapshot %d is not whole: revision %d", i, h.Rev)
		}
	}
	bustest.Clean(t, b) // pruned revisions are no finding
}

func TestHostsAreAllOfThem(t *testing.T) {
	b := bustest.New(t)
	var want, got []string
	for i := range 250 {
		uid := fmt.Sprintf("u%03d", i)
		bustest.Append(t, b, uid, bustest.The(created(uid)), bustest.The(observed(true)))
		want = append(want, uid)
	}
	for h, err := range b.Hosts(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if h.Rev != 2 || h.Power.On == nil {
			t.Errorf("host %s is not whole", h.UID)
		}
		got = append(got, h.UID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d hosts: %v", len(got), got)
	}
	if err := b.Purge(t.Context(), "u000"); err != nil {
		t.Fatal(err)
	}
	if h := bustest.Load(t, b, "u000"); h.Exists() {
		t.Error("the purged host is still there")
	}
	bustest.Append(t, b, "u000", bustest.The(created("u000"))) // and may come back
}

// base is a restored host's memory: provisioned at revision 17.
func base(rev uint64) *event.Base {
	on := true
	return &event.Base{
		Rev:          rev,
		Registration: &event.Registration{Registered: true, Node: "old-node"},
		Provisioning: &event.Provisioning{Phase: event.Deployed, Image: v1alpha1.Image{URL: "http://images.example/a"}},
		Power:        &event.Power{On: &on},
	}
}

func restored(h lifecycle.Host, b *event.Base) lifecycle.Wish {
	w := created(h.UID)
	w.Fact, w.Intent.Base = event.Restored, b
	return w
}

func TestARestoredHostIsWhatItsObjectRemembers(t *testing.T) {
	b := bustest.New(t)
	h := lifecycle.Host{UID: "u1", Rev: 17}
	h, err := b.Append(t.Context(), h, restored(h, base(17)))
	if err != nil {
		t.Fatal(err)
	}
	if h.Rev != 18 {
		t.Errorf("revision %d, want the one after the object's", h.Rev)
	}
	h = bustest.Load(t, b, "u1")
	if lifecycle.Stage(h) != v1alpha1.StateProvisioned || h.Registration.Node != "old-node" || !*h.Power.On {
		t.Errorf("stage %s, registration %+v", lifecycle.Stage(h), h.Registration)
	}
	if m := h.Newest(event.SectionPower); m.Seq != 0 {
		t.Errorf("the section claims an event of its own: %+v", m)
	}
	bustest.Append(t, b, "u1", bustest.The(observed(false)), again)
	h = bustest.Load(t, b, "u1")
	if *h.Power.On || h.Provisioning.Phase != event.Deployed {
		t.Errorf("the section's own event must win, and only for its section: %+v", h)
	}
	bustest.Clean(t, b)
}

func TestALogThatLostItsEndFollowsTheObject(t *testing.T) {
	b := bustest.New(t)
	h := bustest.Append(t, b, "u1", bustest.The(created("u1")), bustest.The(lifecycle.Started{Kind: event.Enroll, Step: "create"}), bustest.The(observed(false)))
	h.Rev = 17 // the object has seen more than the log holds
	mem := base(17)
	mem.Lost = 14
	if _, err := b.Append(t.Context(), h, restored(h, mem)); err != nil {
		t.Fatal(err)
	}
	h = bustest.Load(t, b, "u1")
	if lifecycle.Stage(h) != v1alpha1.StateProvisioned || h.Registration.Op != nil || !*h.Power.On || h.Rev != 18 {
		t.Errorf("an event from before the loss won: stage %s, revision %d, %+v", lifecycle.Stage(h), h.Rev, h.Registration)
	}
	bustest.Clean(t, b)
}

// intrude publishes a message as somebody who does not keep to the rules.
func intrude(tb testing.TB, nc *nats.Conn, uid string, s event.Section, body string, header map[string]string) {
	tb.Helper()
	m := nats.NewMsg("metal." + bustest.Cluster + ".host." + uid + "." + string(s))
	for k, v := range map[string]string{
		"ce-specversion": "1.0", "ce-id": uid + "/99/x", "ce-type": event.Type(s, "changed"), "ce-time": "2026-01-01T00:00:00Z",
		"ce-source": event.Source(bustest.Cluster, s.Writer()), "ce-hostrev": "99", "ce-hostuid": uid,
	} {
		m.Header[k] = []string{v}
	}
	for k, v := range header {
		m.Header[k] = []string{v}
	}
	m.Data = []byte(body)
	if _, err := nc.RequestMsg(m, 5e9); err != nil {
		tb.Fatal(err)
	}
}

func TestASectionOfSomebodyElseIsPassedOver(t *testing.T) {
	s := bustest.Server(t)
	b := bustest.On(t, s, "test")
	nc, _ := raw(t, s)
	before := bustest.Append(t, b, "u1", bustest.The(created("u1")), bustest.The(observed(true)))
	for range 3 {
		intrude(t, nc, "u1", event.SectionPower, `{"state":{"on":false}}`, map[string]string{"ce-source": "/metal/test/evil"})
	}
	h := bustest.Load(t, b, "u1")
	if !*h.Power.On || h.Rev != before.Rev {
		t.Errorf("the intruder's state was taken: %+v", h.Power)
	}
	if h, err := b.Append(t.Context(), h, observed(false)); err != nil || h.Rev != 3 {
		t.Errorf("append after it: revision %d, %v", h.Rev, err)
	}
	report, err := b.Audit(t.Context())
	if err != nil || len(report.Findings) != 3 {
		t.Errorf("audit: %v, %v", report, err)
	}
}

func TestAnUnreadableEventIsSaidToBeOne(t *testing.T) {
	for name, c := range map[string]struct {
		body   string
		header map[string]string
	}{
		"no JSON":                  {`{"state":`, nil},
		"another type of a field":  {`{"state":{"on":"maybe"}}`, nil},
		"something behind the end": {`{"state":{}} {}`, nil},
		"no revision":              {`{"state":{}}`, map[string]string{"ce-hostrev": "x"}},
		"no CloudEvent":            {`{"state":{}}`, map[string]string{"ce-specversion": ""}},
		"no time":                  {`{"state":{}}`, map[string]string{"ce-time": "yesterday"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := bustest.Server(t)
			b := bustest.On(t, s, "test")
			nc, _ := raw(t, s)
			bustest.Append(t, b, "u1", bustest.The(created("u1")))
			intrude(t, nc, "u1", event.SectionPower, c.body, c.header)
			_, err := b.Load(t.Context(), "u1")
			var bad *bus.BadEventError
			if !errors.As(err, &bad) || bad.UID != "u1" || bad.Section != event.SectionPower || bad.Seq != 2 {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestANewerEventIsLeftToNewerReaders(t *testing.T) {
	s := bustest.Server(t)
	b := bustest.On(t, s, "test")
	nc, _ := raw(t, s)
	bustest.Append(t, b, "u1", bustest.The(created("u1")))
	intrude(t, nc, "u1", event.SectionPower, `{"state":{}}`, map[string]string{"ce-minreader": "7"})
	_, err := b.Load(t.Context(), "u1")
	var newer *bus.NewerError
	if !errors.As(err, &newer) || newer.Needs != 7 {
		t.Errorf("error %v", err)
	}
}

func TestAnOlderServiceKeepsWhatANewerOneWrote(t *testing.T) {
	s := bustest.Server(t)
	b := bustest.On(t, s, "powermonitor")
	nc, js := raw(t, s)
	bustest.Append(t, b, "u1", bustest.The(created("u1")))
	intrude(t, nc, "u1", event.SectionPower, `{"state":{"on":false,"watts":{"now":312}}}`, map[string]string{"ce-hostrev": "2"})
	bustest.Append(t, b, "u1", bustest.The(observed(true)), bustest.The(observed(false)))
	stream, err := js.Stream(t.Context(), bus.StreamHost)
	if err != nil {
		t.Fatal(err)
	}
	for seq, want := range map[uint64]string{3: `"on":true`, 4: `"on":false`} {
		m, err := stream.GetMsg(t.Context(), seq)
		if err != nil {
			t.Fatal(err)
		}
		if text := string(m.Data); !strings.Contains(text, `"watts":{"now":312}`) || !strings.Contains(text, want) {
			t.Errorf("event %d: %s", seq, text)
		}
	}
	bustest.Clean(t, b)
}

func TestDataIsKeptByItsDigest(t *testing.T) {
	b := bustest.New(t)
	type doc struct {
		CPU int `json:"cpu"`
	}
	first, err := b.PutData(t.Context(), "u1", event.DataHardware, doc{CPU: 1})
	if err != nil {
		t.Fatal(err)
	}
	second, err := b.PutData(t.Context(), "u1", event.DataHardware, doc{CPU: 2})
	if err != nil || first == second {
		t.Fatal(first, second, err)
	}
	for digest, want := range map[string]int{first: 1, second: 2} {
		var got doc
		if err := b.GetData(t.Context(), "u1", event.DataHardware, digest, &got); err != nil || got.CPU != want {
			t.Errorf("digest %s: %+v, %v", digest, got, err)
		}
	}
	var got doc
	for name, digest := range map[string]string{"another digest": "00ff", "an empty one": ""} {
		if err := b.GetData(t.Context(), "u1", event.DataHardware, digest, &got); !errors.Is(err, bus.ErrNoData) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := b.GetData(t.Context(), "u2", event.DataHardware, first, &got); !errors.Is(err, bus.ErrNoData) {
		t.Errorf("another host: %v", err)
	}
	if _, err := b.PutData(t.Context(), "u1", event.DataHardware, string(make([]byte, 2<<20))); err == nil {
		t.Error("a document of 2 MiB was taken")
	}
}
