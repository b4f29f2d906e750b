package projector

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/kube"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

const (
	// tries is how often a look is repeated at once when others append meanwhile.
	tries = 5
	// soon is when a host is looked at again of which more than one thing is
	// to be recorded.
	soon = time.Millisecond
)

// Look turns a host's object into its intent. Only the replica that leads does so.
func (p *Projector) Look(ctx context.Context, r kube.Ref) (again time.Duration, err error) {
	o := p.kube.Hosts.Get(r.UID)
	if o == nil {
		p.looked.drop(r.UID)
		return 0, p.forget(ctx, r)
	}
	if p.looked.same(o, p.fingerprint(o, p.known(o))) {
		return 0, nil
	}
	for range tries {
		g := &glance{versions: p.known(o)}
		if again, err = p.look(ctx, o, g); err == nil && again == 0 {
			p.looked.note(o, p.fingerprint(o, g.versions))
		} else {
			p.looked.drop(r.UID) // the next look is for what this one left undone
		}
		if !errors.Is(err, bus.ErrConflict) && !errors.Is(err, kube.ErrConflict) {
			break
		}
		if o = p.kube.Hosts.Get(r.UID); o == nil {
			return 0, nil // its end is a nudge of its own
		}
	}
	return again, err
}

// glance is what a look at a host found beside its object.
type glance struct {
	// versions are those of the objects that the host names.
	versions map[string]string
}

func (p *Projector) look(ctx context.Context, o *v1alpha1.BareMetalHost, g *glance) (time.Duration, error) {
	h, err := p.bus.Load(ctx, string(o.UID))
	switch {
	case err != nil:
		return 0, err
	case moving(o):
		return 0, p.letGo(ctx, o, h)
	case frozen(o) && !h.Exists():
		return 0, nil // it is taken over once it is resumed
	case frozen(o):
		return 0, p.record(ctx, h, intentOf(o, surroundings{before: h}), "")
	case o.DeletionTimestamp != nil && !slices.Contains(o.Finalizers, v1alpha1.BareMetalHostFinalizer):
		return 0, nil // it was let go, and others hold it
	case !h.Exists() && o.DeletionTimestamp != nil:
		return soon, p.takeOver(ctx, o, h, g) // it is known before it leaves
	case !h.Exists():
		return 0, p.takeOver(ctx, o, h, g)
	}
	switch standingOf(o, h, p.now()) {
	case lostTail:
		return 0, p.restoreTail(ctx, o, h, g)
	case conflicting:
		return 0, p.hold(ctx, o, h)
	default:
		return p.follow(ctx, o, h, g)
	}
}

// follow records what the object of a known host asks, if that has changed, and
// has it shown what it does not show.
func (p *Projector) follow(ctx context.Context, o *v1alpha1.BareMetalHost, h lifecycle.Host, g *glance) (time.Duration, error) {
	o, s, err := p.surroundings(ctx, o, h, g)
	if err != nil {
		return 0, err
	}
	next := intentOf(o, s)
	if old := h.Intent.Credentials.Name; old != "" && old != next.Credentials.Name {
		if err := p.kube.ReleaseSecret(ctx, o, old); err != nil {
			return 0, err
		}
	}
	if next.Hash != h.Intent.Hash && !over(h) {
		p.warn(o, h, next)
		return 0, p.record(ctx, h, next, "")
	}
	// Whatever differs now was not caused by an event, so no trigger brings
	// it: a status that was lost, a generation that asks nothing new.
	return p.show(ctx, string(o.UID), lookFor{whole: true})
}

// over reports whether a host leaves and its services are done with it. What changes
// from then on, such as a Secret that is let go of, is nobody's business any more.
func over(h lifecycle.Host) bool { return lifecycle.Leaving(h) && h.Registration.Removed }

// surroundings claims what a host needs and finds what is known beside its object.
func (p *Projector) surroundings(ctx context.Context, o *v1alpha1.BareMetalHost, h lifecycle.Host, g *glance) (*v1alpha1.BareMetalHost, surroundings, error) {
	s := surroundings{before: h, ask: p.wishes.Ask, now: p.now()}
	var err error
	if o.DeletionTimestamp == nil {
		if o, err = p.kube.AddFinalizer(ctx, o); err != nil {
			return o, s, err
		}
	}
	for _, name := range kube.SecretsOf(o) {
		version, err := p.claim(ctx, o, name)
		if err != nil {
			return o, s, err
		}
		g.versions[name] = version
		if name == o.Spec.BMC.CredentialsName {
			s.secret = version
		}
	}
	s.ramdisk = p.ramdisk(o, h, g.versions)
	s.firmware, s.firmwareKnown = p.firmware.Wish(h.UID)
	noteWish(g.versions, s.firmware, s.firmwareKnown)
	s.supplied, err = p.supplied(ctx, o, h)
	return o, s, err
}

// ramdisk is what the host is to boot. While that is not known it stays what it was,
// but for hosts that had none: they wait. The versions take it in.
func (p *Projector) ramdisk(o *v1alpha1.BareMetalHost, h lifecycle.Host, versions map[string]string) *event.RamdiskWish {
	if p.ramdisks == nil {
		return nil
	}
	w, known := p.ramdisks.Wish(o, versions[o.Spec.PreprovisioningNetworkDataName])
	if !known {
		versions[keyOfRamdisk] = "unknown"
		if h.Intent.Ramdisk == nil {
			return &event.RamdiskWish{Waits: "the PreprovisioningImages to be listed"}
		}
		return h.Intent.Ramdisk
	}
	versions[keyOfRamdisk] = encode(w)
	return &w
}

// keyOfRamdisk is where the versions of what a host names hold what it is to boot.
const keyOfRamdisk = "/ramdisk"

// noteWish notes among the versions of what a host depends on what is wished of its
// firmware.
func noteWish(versions map[string]string, w *event.FirmwareWish, known bool) {
	if known {
		versions["/firmware"] = digestOf(w)
	}
}

// claim is the version of a Secret that the host names. A host that leaves
// claims nothing more.
func (p *Projector) claim(ctx context.Context, o *v1alpha1.BareMetalHost, name string) (string, error) {
	if o.DeletionTimestamp != nil {
		return p.kube.SecretVersion(ctx, o.Namespace, name)
	}
	return p.kube.ClaimSecret(ctx, o, name)
}

// supplied are hardware details that somebody gave for a host that has none, or
// that is not inspected. HardwareData go before the annotation.
func (p *Projector) supplied(ctx context.Context, o *v1alpha1.BareMetalHost, h lifecycle.Host) (supply, error) {
	if h.Inspection.Digest != "" && !o.InspectionDisabled() {
		return supply{}, nil
	}
	hw, source, err := p.details(ctx, o)
	if err != nil || hw == nil {
		return supply{}, err
	}
	switch digest := digestOf(hw); digest {
	case h.Inspection.Digest:
		return supply{}, nil // they are in effect
	case h.Intent.Hardware:
		return supply{digest, source}, nil // they are in the data stream already
	}
	digest, err := p.bus.PutData(ctx, string(o.UID), event.DataSupplied, hw)
	return supply{digest, source}, err
}

func (p *Projector) details(ctx context.Context, o *v1alpha1.BareMetalHost) (*v1alpha1.HardwareDetails, string, error) {
	if p.kube.HardwareVersion(o.Namespace, o.Name) != "" {
		hw, err := p.kube.ReadHardware(ctx, o.Namespace, o.Name)
		if hw != nil || err != nil {
			return hw, "hardwaredata", err
		}
	}
	text := o.Annotations[v1alpha1.HardwareDetailsAnnotation]
	if text == "" {
		return nil, "", nil
	}
	hw, err := parseSupplied(text)
	if err != nil {
		p.kube.Announcer.Tell(o, kube.News{
			ID: "misread/" + kube.Digest(text), Reason: "InvalidAnnotationValue", Message: err.Error(), Warning: true, At: p.now(),
		})
		return nil, "", nil //nolint:nilerr // it is the user's, and was told
	}
	return hw, "annotation", nil
}

// digestOf is the digest under which the data stream holds a document.
func digestOf(v any) string {
	sum := sha256.Sum256([]byte(encode(v)))
	return hex.EncodeToString(sum[:])
}

// record appends what is asked of a host, if that is something new.
func (p *Projector) record(ctx context.Context, h lifecycle.Host, next event.Intent, reason string) error {
	if h.Exists() && next.Hash == h.Intent.Hash {
		return nil
	}
	return p.append(ctx, h, lifecycle.Wish{Fact: factOf(h, next), Intent: next, Reason: reason})
}

func (p *Projector) append(ctx context.Context, h lifecycle.Host, w lifecycle.Wish) error {
	_, err := p.bus.Append(ctx, h, w)
	if err == nil {
		p.log.Debug("recorded a wish", keyHost, w.Intent.Namespace+"/"+w.Intent.Name, keyUID, h.UID, keyFact, w.Fact)
	}
	return err
}

// warn tells of annotations that are not what they should be.
func (p *Projector) warn(o *v1alpha1.BareMetalHost, h lifecycle.Host, next event.Intent) {
	if !newReboot(h.Intent, next) {
		return
	}
	for key, value := range o.Annotations {
		if !v1alpha1.IsRebootAnnotation(key) {
			continue
		}
		if _, err := v1alpha1.ParseRebootArguments(value); err != nil {
			p.kube.Announcer.Tell(o, kube.News{
				ID: "misread/" + key + kube.Digest(value), Reason: "InvalidAnnotationValue", Warning: true, At: p.now(),
				Message: fmt.Sprintf("could not parse reboot annotation (%s) - invalid json, assuming soft-reboot", value),
			})
		}
	}
}

// looked is what each object looked like when it was last turned into an
// intent, so that nothing is read for a change of the status alone.
type looked struct {
	mu    sync.Mutex
	byUID map[string]look
}

// look is one object.
type look struct {
	seen string
	// born: it had a status.
	born bool
}

func newLooked() *looked { return &looked{byUID: map[string]look{}} }

// same reports whether an object asks what it asked when it was last noted, is
// held by our finalizer, and shows what it should: it has not lost its status,
// and that is about its present generation.
func (l *looked) same(o *v1alpha1.BareMetalHost, seen string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	uid, born := string(o.UID), !kube.Unborn(o)
	was := l.byUID[uid]
	lost := was.born && !born
	held := frozen(o) || o.DeletionTimestamp != nil || slices.Contains(o.Finalizers, v1alpha1.BareMetalHostFinalizer)
	if born && !was.born {
		l.byUID[uid] = look{seen: was.seen, born: true}
	}
	return was.seen == seen && held && !lost && (!born || observed(o) >= o.Generation)
}

func (l *looked) note(o *v1alpha1.BareMetalHost, seen string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byUID[string(o.UID)] = look{seen: seen, born: !kube.Unborn(o)}
}

func (l *looked) drop(uid string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byUID, uid)
}

func (l *looked) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.byUID)
}

// known are the versions of the objects that a host names, as far as they are
// remembered.
func (p *Projector) known(o *v1alpha1.BareMetalHost) map[string]string {
	versions := map[string]string{}
	for _, name := range kube.SecretsOf(o) {
		versions[name] = p.kube.KnownSecret(o.Namespace, name)
	}
	if v := p.kube.HardwareVersion(o.Namespace, o.Name); v != "" && (o.Status.HardwareDetails == nil || o.InspectionDisabled()) {
		versions["/hardware"] = v
	}
	p.ramdisk(o, lifecycle.Host{}, versions)
	w, known := p.firmware.Wish(string(o.UID))
	noteWish(versions, w, known)
	versions["/wishes"] = p.wishes.Digest(o)
	return versions
}

// fingerprint covers everything that an intent is made of.
func (p *Projector) fingerprint(o *v1alpha1.BareMetalHost, versions map[string]string) string {
	annotations := maps.Clone(o.Annotations)
	delete(annotations, v1alpha1.RevisionAnnotation)
	if !kube.Unborn(o) {
		delete(annotations, v1alpha1.StatusAnnotation)
	}
	text, err := json.Marshal([]any{o.Generation, annotations, o.Labels, o.DeletionTimestamp, versions})
	if err != nil {
		panic(fmt.Sprintf("encode a fingerprint: %v", err)) // of our own types
	}
	sum := sha256.Sum256(text)
	return string(sum[:])
}

// observed is the generation that the status is about.
func observed(o *v1alpha1.BareMetalHost) int64 {
	i := slices.IndexFunc(o.Status.Conditions, func(c metav1.Condition) bool { return c.Type == projectedCondition })
	if i < 0 {
		return 0
	}
	return o.Status.Conditions[i].ObservedGeneration
}
