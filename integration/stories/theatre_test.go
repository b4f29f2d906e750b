package stories_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/backend"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/bus/bustest"
	"github.com/metalbus/metalbus/pkg/bus/embedded"
	"github.com/metalbus/metalbus/pkg/kube"
	"github.com/metalbus/metalbus/pkg/kube/firmware"
	"github.com/metalbus/metalbus/pkg/kube/hostwish"
	"github.com/metalbus/metalbus/pkg/kube/kubetest"
	"github.com/metalbus/metalbus/pkg/kube/preprov"
	"github.com/metalbus/metalbus/pkg/lifecycle"
	"github.com/metalbus/metalbus/services/inspector"
	"github.com/metalbus/metalbus/services/powermonitor"
	"github.com/metalbus/metalbus/services/projector"
	"github.com/metalbus/metalbus/services/provisioner"
	"github.com/metalbus/metalbus/services/registrar"
)

const namespace = "lab"

// theatre is where stories are told by the real services: all five, over
// JetStream, between a Kubernetes API and a lab. Several stories are told in one
// at once, each of a host of its own.
type theatre struct {
	t    *testing.T
	api  *kubetest.Server
	nats *embedded.Server
	bus  *bus.Bus
	lab  lab
	pace pace
	log  *slog.Logger
	// images: each host has an image of its own to boot.
	images bool
	// complaints are log lines that no story may cause.
	complaints *complaints

	// skew is how far the clock of its services is from that of everybody else.
	skew atomic.Int64

	mu   sync.Mutex // one restart at a time
	stop func()

	vault   sync.Mutex           // not held while services are waited for: they ask
	secrets map[string][]written // by name
}

// written is what a story wrote into a Secret, and which version that made.
type written struct {
	version  int
	password string
}

// timing is as short as hardware that takes next to no time allows. The windows
// of claims are not shortened that much: a busy computer would miss them.
func timing() bus.Timing {
	t := bustest.Timing()
	t.Window, t.Handling, t.Quarantine, t.AckWait, t.Reply = 3*time.Second, 4*time.Second, 5*time.Second, 5*time.Second, 5*time.Second
	t.Resume, t.Forgotten = 10*time.Second, 20*time.Second
	t.BackOffMax = 400 * time.Millisecond
	return t
}

// open sets a theatre up and begins its services.
func openTheatre(t *testing.T, images bool, open func(*testing.T, surroundings) lab) *theatre {
	t.Helper()
	h := &theatre{t: t, images: images, api: kubetest.New(t), nats: bustest.Server(t), complaints: &complaints{Handler: slog.DiscardHandler}, secrets: map[string][]written{}}
	h.log = slog.New(h.complaints)
	h.lab = open(t, surroundings{now: h.now, secrets: h, password: h.password})
	h.pace = paceOf(h.lab)
	h.bus = h.connect("test")
	h.begin()
	t.Cleanup(func() { h.stop() })
	return h
}

// now is the time by the clock of its services.
func (h *theatre) now() time.Time { return time.Now().Add(time.Duration(h.skew.Load())) }

func (h *theatre) connect(name string) *bus.Bus {
	h.t.Helper()
	waits := timing()
	waits.Poll = h.pace.poll
	b, err := bus.Connect(h.t.Context(), bus.Config{Cluster: bustest.Cluster, Name: name, Timing: waits}, bus.WithServer(h.nats), bus.WithClock(h.now), bus.WithLogger(h.log.With("service", name)))
	if err != nil {
		h.t.Fatal(err)
	}
	if _, err := b.Init(h.t.Context(), bus.InitOptions{Replicas: 1, MaxBytes: 1 << 30, Memory: true}); err != nil {
		h.t.Fatal(err)
	}
	return b
}

// begin begins all services.
func (h *theatre) begin() {
	ctx, cancel := context.WithCancel(context.WithoutCancel(h.t.Context()))
	var running sync.WaitGroup
	run := func(name string, f func(context.Context, *bus.Bus) error) {
		b := h.connect(name)
		running.Go(func() {
			if err := errors.Join(f(ctx, b), b.Close()); err != nil && ctx.Err() == nil {
				h.complaints.add("", fmt.Sprintf("%s ended: %v", name, err))
			}
		})
	}
	set := backend.NewSet(h.lab.backend())
	serve := func(w func(*bus.Bus) bus.Worker) func(context.Context, *bus.Bus) error {
		return func(ctx context.Context, b *bus.Bus) error { return b.Serve(ctx, w(b)) }
	}
	watch := powermonitor.Config{Every: h.pace.watch}
	run("registrar", serve(func(b *bus.Bus) bus.Worker { return registrar.New(set, b, h.now, registrar.Config{}) }))
	run("inspector", serve(func(b *bus.Bus) bus.Worker { return inspector.New(set, b) }))
	run("provisioner", serve(func(b *bus.Bus) bus.Worker { return provisioner.New(set, b, h.now, provisioner.DefaultConfig()) }))
	run("powermonitor", serve(func(*bus.Bus) bus.Worker { return powermonitor.New(set, h.now, watch) }))
	run("projector", h.project)
	h.stop = func() { cancel(); running.Wait() }
}

func (h *theatre) project(ctx context.Context, b *bus.Bus) error {
	registry := prometheus.NewRegistry()
	c, err := kube.New(h.api.Config(), kube.Config{Identity: "projector", Namespaces: []string{namespace}, EventsPerSecond: 10000}, kube.Options{Log: h.log, Metrics: registry, Now: time.Now})
	if err != nil {
		return err
	}
	cfg := projector.DefaultConfig()
	cfg.StatusDelay = 10 * time.Millisecond
	asked, err := hostwish.New(c, h.log)
	if err != nil {
		return err
	}
	fw, err := firmware.New(c, b, h.log, h.now)
	if err != nil {
		return err
	}
	o := projector.Options{
		Log: h.log, Metrics: registry, Now: h.now, Wishes: asked, Firmware: fw, Beside: []projector.Part{asked.Run}, Leading: []projector.Part{asked.Lead, fw.Run},
	}
	if h.images {
		images, err := preprov.New(preprov.Config{Enabled: true}, c, h.log, h.now)
		if err != nil {
			return err
		}
		o.Ramdisks, o.Leading = images, append(o.Leading, images.Run)
	}
	return projector.New(cfg, c, b, o).Run(ctx)
}

// again ends all services and begins them anew.
func (h *theatre) again() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stop()
	h.begin()
}

// Credentials are the login in a Secret.
func (h *theatre) Credentials(_ context.Context, ns, name string) (user, password string, err error) {
	data, _, err := h.Get(context.Background(), ns, name)
	return string(data["username"]), string(data["password"]), err
}

// Get is all that is in a Secret, and its version.
func (h *theatre) Get(_ context.Context, ns, name string) (data map[string][]byte, version string, err error) {
	var s corev1.Secret
	if !h.api.Object("secrets", ns, name, &s) {
		p := lifecycle.NewProblem(v1alpha1.RegistrationError, event.ClassCredentials, "the Secret is gone")
		return nil, "", &lifecycle.ProblemError{Problem: p}
	}
	return s.Data, s.ResourceVersion, nil
}

// password is what is in a version of a Secret. What others write to it leaves
// the login alone.
func (h *theatre) password(ref event.SecretRef) string {
	asked, _ := strconv.Atoi(ref.Version)
	h.vault.Lock()
	defer h.vault.Unlock()
	password := ""
	for _, w := range h.secrets[ref.Name] {
		if w.version <= asked {
			password = w.password
		}
	}
	return password
}

// play is one story in a theatre.
type play struct {
	*theatre
	t      *testing.T
	user   kubetest.User
	name   string
	uid    string
	past   []lifecycle.Host
	cursor int
	born   func(uid string)
}

// stage sets a story up.
func (h *theatre) stage(t *testing.T, name string) *site {
	t.Helper()
	m := h.lab.machine(t, name)
	p := &play{theatre: h, t: t, user: kubetest.NewUser(t, h.api.Config(), namespace), name: name, born: m.born}
	t.Cleanup(func() {
		for _, text := range h.complaints.of(p.uid) {
			t.Errorf("the log says: %s", text)
		}
	})
	return &site{user: p, course: p, machine: m, name: name}
}

func (p *play) apply(edit func(*v1alpha1.BareMetalHost)) {
	p.t.Helper()
	if p.uid != "" {
		p.user.Change(p.name, edit)
		p.heard()
		return
	}
	o := &v1alpha1.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: p.name, Annotations: map[string]string{}}}
	edit(o)
	p.user.Create(o)
	p.uid = string(p.user.Host(p.name).UID)
	p.born(p.uid)
}

func (p *play) remove() {
	p.t.Helper()
	p.user.DeleteHost(p.name)
	p.heard()
}

// heard waits until the bus has what the object asks, or had it meanwhile: a story
// goes on where its table says that it was heard.
func (p *play) heard() {
	p.t.Helper()
	p.follow()
	from, o := max(len(p.past)-1, 0), p.shown()
	if o == nil {
		return
	}
	p.awaited("the object to be heard of", func() bool {
		p.follow()
		return slices.ContainsFunc(p.past[from:], func(h lifecycle.Host) bool { return asks(h, o) })
	})
}

// heardSpec reports whether an intent is that of an object's generation, or asks the
// same: what a service of ours writes into a spec is news to nobody.
func heardSpec(is event.Intent, o *v1alpha1.BareMetalHost) bool {
	return is.Generation >= o.Generation || cmp.Equal(is.Spec, o.Spec, cmpopts.IgnoreFields(v1alpha1.BareMetalHostSpec{}, "Architecture"), cmpopts.EquateEmpty())
}

// asks reports whether an intent is what an object asks.
func asks(h lifecycle.Host, o *v1alpha1.BareMetalHost) bool {
	want := (&desk{object: o}).intent(h)
	is := h.Intent
	if want.Paused {
		return is.Paused
	}
	return !is.Paused && heardSpec(is, o) && is.DeletedAt.IsZero() == want.DeletedAt.IsZero() &&
		cmp.Equal(is.Detached, want.Detached) && is.InspectionDisabled == want.InspectionDisabled &&
		(is.InspectRequest == "") == (want.InspectRequest == "") && is.Retry == want.Retry && is.ForceDelete == want.ForceDelete &&
		slices.EqualFunc(is.Reboots, want.Reboots, func(a, b event.RebootRequest) bool { return a.Key == b.Key && a.Mode == b.Mode && a.Force == b.Force })
}

// heardSecret waits until the bus knows that a Secret has that version, or a later
// one; 0 is that there is none.
func (p *play) heardSecret(version int) {
	p.t.Helper()
	if p.uid == "" || p.shown() == nil {
		return
	}
	p.awaited("the Secret to be heard of", func() bool {
		p.follow()
		is, _ := strconv.Atoi(p.past[len(p.past)-1].Intent.Credentials.Version)
		return is >= version && (is == 0) == (version == 0)
	})
}

func (p *play) secret(data map[string]string) {
	p.t.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: p.name + "-bmc"}}
	if data == nil {
		p.api.Purge("secrets", namespace, s.Name)
		p.heardSecret(0)
		return
	}
	there := p.user.Read(s)
	s.Data, s.Annotations = map[string][]byte{}, map[string]string{"written": strconv.Itoa(p.writes(s.Name))}
	for k, v := range data {
		s.Data[k] = []byte(v)
	}
	p.heardSecret(p.put(s, there, data["password"]))
}

// writes is how often a story has written a Secret.
func (p *play) writes(name string) int {
	p.vault.Lock()
	defer p.vault.Unlock()
	return len(p.secrets[name])
}

// put writes a Secret, and says which version that made.
func (p *play) put(s *corev1.Secret, there bool, password string) (version int) {
	p.t.Helper()
	p.vault.Lock() // nobody asks before it is noted
	defer p.vault.Unlock()
	if there {
		p.user.Update(s)
	} else {
		p.user.Create(s)
	}
	version, err := strconv.Atoi(s.ResourceVersion)
	if err != nil {
		p.t.Fatal(err)
	}
	p.secrets[s.Name] = append(p.secrets[s.Name], written{version, password})
	return version
}

func (p *play) shown() *v1alpha1.BareMetalHost { return p.user.Host(p.name) }

func (p *play) restart() { p.again() }

// pass has no meaning by a real clock: what is to happen is waited for.
func (*play) pass(time.Duration) {}

// follow reads what has happened.
func (p *play) follow() {
	p.t.Helper()
	if p.uid == "" {
		return
	}
	var rev uint64
	if n := len(p.past); n > 0 {
		rev = p.past[n-1].Rev
	}
	now, err := p.bus.Load(p.t.Context(), p.uid)
	if err != nil {
		p.t.Fatal(err)
	}
	news, err := p.bus.Snapshots(p.t.Context(), now, rev)
	if err != nil {
		p.t.Fatal(err)
	}
	if len(news) > 0 && rev > 0 && news[0].Rev != rev+1 {
		p.t.Fatalf("revisions %d to %d came too fast to be followed", rev+1, news[0].Rev-1)
	}
	p.past = append(p.past, news...)
}

func (p *play) history() []lifecycle.Host {
	p.follow()
	return p.past
}

func (p *play) at() lifecycle.Host { return p.past[p.cursor] }

func (p *play) until(what string, c condition) {
	p.t.Helper()
	p.awaited(what, func() bool { p.follow(); return p.reached(c) })
}

// awaited waits until something is so; if it never is it tells how the host is.
func (p *play) awaited(what string, so func() bool) {
	p.t.Helper()
	for deadline := time.Now().Add(p.pace.patience); !so(); time.Sleep(2 * time.Millisecond) {
		if time.Now().Before(deadline) {
			continue
		}
		last := "nothing"
		if n := len(p.past); n > 0 {
			last = describe(p.past[n-1])
		}
		p.t.Fatalf("waited in vain for %s; the host is %s", what, last)
	}
}

// reached looks for the condition from what was waited for last on.
func (p *play) reached(c condition) bool {
	from, newest := p.cursor, len(p.past)
	if c.now {
		from = max(from, newest-1)
	}
	for i := from; i < newest; i++ {
		if !c.holds(p.past[i]) {
			continue
		}
		if c.object != nil && !c.object(p.shown()) || c.firmware != nil && !c.firmware(p.firmware()) {
			return false
		}
		p.cursor = i
		return !c.now || p.still(newest)
	}
	return false
}

// still reports whether nothing has happened since there were so many revisions:
// what was seen meanwhile belongs to the last of them.
func (p *play) still(newest int) bool {
	p.follow()
	return len(p.past) == newest
}

// complaints is a logger that remembers what should not happen at all: steps
// that the table refuses, and faults of ours.
type complaints struct {
	slog.Handler
	attrs []slog.Attr
	root  *complaints
	mu    sync.Mutex
	lines map[string][]string // by uid
}

func (*complaints) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

func (c *complaints) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &complaints{Handler: c.Handler, attrs: append(c.attrs[:len(c.attrs):len(c.attrs)], attrs...), root: c.top()}
}

func (c *complaints) WithGroup(string) slog.Handler { return c }

func (c *complaints) top() *complaints {
	if c.root != nil {
		return c.root
	}
	return c
}

func (c *complaints) Handle(_ context.Context, r slog.Record) error {
	var uid, outcome string
	text := []string{r.Message}
	note := func(a slog.Attr) bool {
		switch a.Key {
		case "uid":
			uid = a.Value.String()
		case "outcome":
			outcome = a.Value.String()
		}
		text = append(text, a.String())
		return true
	}
	for _, a := range c.attrs {
		note(a)
	}
	r.Attrs(note)
	switch outcome {
	case "not allowed", "fault", "panic", "unreadable", "deadly":
		c.top().add(uid, strings.Join(text, " "))
	}
	return nil
}

func (c *complaints) add(uid, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lines == nil {
		c.lines = map[string][]string{}
	}
	c.lines[uid] = append(c.lines[uid], text)
}

func (c *complaints) of(uid string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append(append([]string(nil), c.lines[uid]...), c.lines[""]...)
}
