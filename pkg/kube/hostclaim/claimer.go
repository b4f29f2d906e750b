package hostclaim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/kube"
)

const (
	// patience is when a claim without a host is looked at again though nothing
	// was heard of that would help it.
	patience = 30 * time.Second
	// arrival is how long a claim waits for a host that it has a note of and
	// that is not there: in a move between clusters it may come later.
	arrival = 2 * time.Minute
	// After a conflict the next look comes from leastPause to mostPause later.
	leastPause = 100 * time.Millisecond
	mostPause  = time.Second
	// rounds is how many hosts a claim tries to get in one look.
	rounds = 3
)

// view is what was last seen, which may be old.
type view interface {
	Claim(key types.NamespacedName) (*v1alpha1.HostClaim, bool)
	Policies() []*v1alpha1.HostDeployPolicy
	Host(key types.NamespacedName) (*v1alpha1.BareMetalHost, bool)
	Hosts() []*v1alpha1.BareMetalHost
}

// errRefused: the API has refused a write for good, so it was not made.
var errRefused = errors.New("refused")

// store is what there is now. A write fails with kube.ErrConflict if somebody
// has written the object since it was read, and with errRefused if the API does
// not take it; after any other error it may have been made. It returns the
// object after it.
type store interface {
	// Host is kube.ErrGone if there is none.
	Host(ctx context.Context, key types.NamespacedName) (*v1alpha1.BareMetalHost, error)
	// Labels are those of a namespace.
	Labels(ctx context.Context, namespace string) (map[string]string, error)
	// Note writes the claim's choice, "" for none, and our finalizer.
	Note(ctx context.Context, claim *v1alpha1.HostClaim, n note) (*v1alpha1.HostClaim, error)
	// Consume writes the host's consumer, nil for none.
	Consume(ctx context.Context, host *v1alpha1.BareMetalHost, consumer *corev1.ObjectReference) (*v1alpha1.BareMetalHost, error)
	// WriteStatus writes the claim's status.
	WriteStatus(ctx context.Context, claim *v1alpha1.HostClaim, status v1alpha1.HostClaimStatus) (*v1alpha1.HostClaim, error)
}

// note is what a claim's metadata say of us.
type note struct {
	// chosen is the host that the claim has or is about to get.
	chosen types.NamespacedName
	// finalizer keeps the claim until its host was given back.
	finalizer bool
}

// noteOf reads a claim's note.
func noteOf(claim *v1alpha1.HostClaim) note {
	n := note{finalizer: slices.Contains(claim.Finalizers, v1alpha1.HostClaimFinalizer)}
	if namespace, name, ok := strings.Cut(claim.Annotations[v1alpha1.ChosenHostAnnotation], "/"); ok {
		n.chosen = types.NamespacedName{Namespace: namespace, Name: name}
	}
	return n
}

// claimer gives one claim at a time its host.
type claimer struct {
	seen  view
	store store
	now   func() time.Time
	// random is a number from 0 up to n.
	random func(n int) int
}

// look brings a claim closer to having a host, or to giving it back.
func (c *claimer) look(ctx context.Context, key types.NamespacedName) (again time.Duration, err error) {
	claim, there := c.seen.Claim(key)
	if !there {
		return 0, nil
	}
	if _, moving := claim.Annotations[v1alpha1.DeleteForMoveAnnotation]; moving {
		return 0, nil // it has its host in another cluster from now on
	}
	if claim.DeletionTimestamp != nil {
		again, err = c.release(ctx, claim)
	} else {
		again, err = c.associate(ctx, claim)
	}
	if errors.Is(err, kube.ErrConflict) {
		// At different times, so that two replicas do not meet again.
		return leastPause + time.Duration(c.random(int(mostPause-leastPause))), nil
	}
	if errors.Is(err, kube.ErrGone) {
		return 0, nil
	}
	return again, err
}

// associate gives a claim its host.
func (c *claimer) associate(ctx context.Context, claim *v1alpha1.HostClaim) (time.Duration, error) {
	for range rounds {
		next, again, settled, err := c.round(ctx, claim)
		if err != nil || settled {
			return again, err
		}
		claim = next
	}
	return leastPause, nil
}

// round goes one step towards a claim's host: chooses one, or takes the chosen
// one. It is settled once the claim's status tells how it stands.
func (c *claimer) round(ctx context.Context, claim *v1alpha1.HostClaim) (next *v1alpha1.HostClaim, again time.Duration, settled bool, err error) {
	chosen, known := c.chosen(claim)
	if !known {
		claim, why, err := c.choose(ctx, claim)
		if err != nil || why.reason == "" {
			return claim, 0, false, err
		}
		_, err = c.tell(ctx, claim, why)
		return claim, patience, true, err
	}
	s, again, err := c.take(ctx, claim, chosen)
	if err == nil && (s.reason == "" || s.refused) {
		claim, err = c.store.Note(ctx, claim, note{finalizer: true})
	}
	if err != nil || s.reason == "" {
		return claim, 0, false, err
	}
	_, err = c.tell(ctx, claim, s)
	return claim, again, true, err
}

// chosen is the host that a claim has or is about to get: the one that it has
// noted, that its status tells of, or that tells of it.
func (c *claimer) chosen(claim *v1alpha1.HostClaim) (types.NamespacedName, bool) {
	if n := noteOf(claim); n.chosen.Name != "" {
		return n.chosen, true
	}
	if ref := claim.Status.BareMetalHost; ref != nil {
		return types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, true
	}
	for _, h := range c.seen.Hosts() {
		if consumes(claim, h) {
			return types.NamespacedName{Namespace: h.Namespace, Name: h.Name}, true
		}
	}
	return types.NamespacedName{}, false
}

// choose notes one of the hosts that a claim could have. If there is none, it
// says why.
func (c *claimer) choose(ctx context.Context, claim *v1alpha1.HostClaim) (*v1alpha1.HostClaim, standing, error) {
	policies := c.seen.Policies()
	var labels map[string]string
	if asksForLabels(policies) {
		var err error
		if labels, err = c.store.Labels(ctx, claim.Namespace); err != nil {
			return claim, hasNone(v1alpha1.NoBareMetalHostReason, fmt.Sprintf("The labels of namespace %s can not be read: %v.", claim.Namespace, err)), nil
		}
	}
	options, err := choices(claim, open(claim, policies, labels), c.seen.Hosts())
	if err != nil {
		return claim, hasNone(v1alpha1.NoBareMetalHostReason, fmt.Sprintf("The selector can not be read: %v. Correct it.", err)), nil
	}
	if len(options.candidates) == 0 {
		return claim, hasNone(v1alpha1.NoBareMetalHostReason, options.why), nil
	}
	h := options.candidates[c.random(len(options.candidates))]
	claim, err = c.store.Note(ctx, claim, note{chosen: types.NamespacedName{Namespace: h.Namespace, Name: h.Name}, finalizer: true})
	return claim, standing{}, err
}

// take makes the chosen host the claim's. No standing means that another host
// has to be chosen.
func (c *claimer) take(ctx context.Context, claim *v1alpha1.HostClaim, chosen types.NamespacedName) (s standing, again time.Duration, err error) {
	if h, seen := c.seen.Host(chosen); seen && consumes(claim, h) {
		return has(h), 0, nil
	}
	h, err := c.store.Host(ctx, chosen)
	recorded := claim.Status.BareMetalHost != nil
	switch {
	case errors.Is(err, kube.ErrGone) && recorded:
		return hasNone(v1alpha1.MissingBareMetalHostReason, fmt.Sprintf("Host %s has gone. Delete the claim and make another one.", chosen)), patience, nil
	case errors.Is(err, kube.ErrGone) && c.now().Sub(claim.CreationTimestamp.Time) < arrival:
		return hasNone(v1alpha1.MissingBareMetalHostReason, fmt.Sprintf("Host %s is not there yet.", chosen)), patience, nil
	case errors.Is(err, kube.ErrGone):
		return standing{}, 0, nil
	case err != nil:
		return standing{}, 0, err
	case consumes(claim, h):
		return has(h), 0, nil
	case h.Spec.ConsumerRef != nil && recorded:
		r := h.Spec.ConsumerRef
		return hasNone(v1alpha1.BareMetalHostNotSynchronizedReason,
			fmt.Sprintf("Host %s is used by %s %s/%s now. Have it released, or delete the claim.", chosen, r.Kind, r.Namespace, r.Name)), patience, nil
	case h.Spec.ConsumerRef != nil, unfit(h) != "" && !recorded:
		return standing{}, 0, nil
	}
	consumed, err := c.store.Consume(ctx, h, consumer(claim))
	switch {
	case err == nil:
		return has(consumed), 0, nil
	case errors.Is(err, kube.ErrGone):
		return standing{}, 0, kube.ErrConflict // look again at what there is
	case errors.Is(err, errRefused):
		s = hasNone(v1alpha1.BareMetalHostNotSynchronizedReason, fmt.Sprintf("Host %s can not be taken: %v.", chosen, err))
		s.refused = !recorded
		return s, patience, nil
	default:
		return standing{}, 0, err
	}
}

// release gives back the host of a claim that is being deleted.
func (c *claimer) release(ctx context.Context, claim *v1alpha1.HostClaim) (time.Duration, error) {
	n := noteOf(claim)
	if !n.finalizer {
		return 0, nil
	}
	var err error
	if !failed(claim) { // until it is given back that says more
		if claim, err = c.tell(ctx, claim, hasNone(v1alpha1.HostClaimDeletingReason, "The claim is being deleted and gives its host back.")); err != nil {
			return 0, err
		}
	}
	if chosen, known := c.chosen(claim); known {
		h, err := c.store.Host(ctx, chosen)
		if err == nil && consumes(claim, h) {
			_, err = c.store.Consume(ctx, h, nil)
		}
		switch {
		case errors.Is(err, kube.ErrConflict):
			return 0, err
		case err != nil && !errors.Is(err, kube.ErrGone):
			_, err = c.tell(ctx, claim, hasNone(v1alpha1.HostClaimDeletionFailedReason, fmt.Sprintf("Host %s could not be given back: %v.", chosen, err)))
			return patience, err
		}
	}
	_, err = c.store.Note(ctx, claim, note{})
	return 0, err
}

// failed reports whether the claim says already that its host could not be
// given back.
func failed(claim *v1alpha1.HostClaim) bool {
	c := meta.FindStatusCondition(claim.Status.Conditions, v1alpha1.AssociatedCondition)
	return c != nil && c.Reason == v1alpha1.HostClaimDeletionFailedReason
}

// tell writes where the claim stands, if that is something new.
func (c *claimer) tell(ctx context.Context, claim *v1alpha1.HostClaim, s standing) (*v1alpha1.HostClaim, error) {
	status := statusOf(claim, s, c.now())
	if equality.Semantic.DeepEqual(status, claim.Status) {
		return claim, nil
	}
	return c.store.WriteStatus(ctx, claim, status)
}

// consumer is how a host names a claim.
func consumer(claim *v1alpha1.HostClaim) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "HostClaim", Namespace: claim.Namespace, Name: claim.Name}
}

// consumes reports whether a host names the claim.
func consumes(claim *v1alpha1.HostClaim, h *v1alpha1.BareMetalHost) bool {
	key, ok := claimOf(h)
	return ok && key.Namespace == claim.Namespace && key.Name == claim.Name
}

// claimOf is the claim that a host names.
func claimOf(h *v1alpha1.BareMetalHost) (types.NamespacedName, bool) {
	ref := h.Spec.ConsumerRef
	if ref == nil || ref.Kind != "HostClaim" || !strings.HasPrefix(ref.APIVersion, v1alpha1.GroupVersion.Group+"/") {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, true
}
