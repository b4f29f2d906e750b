package hostclaim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// B32: one machine takes two hosts, two machines take one. Twenty claims want
// ten hosts, all at once, from two replicas whose caches are two seconds behind,
// and one write in five ends in a conflict.
func TestB32(t *testing.T) {
	t.Parallel()
	const rounds = 200
	for seed := range uint64(rounds) {
		synctest.Test(t, func(t *testing.T) { scramble(t, seed) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

const (
	claimers = 20
	machines = 10
)

func scramble(t *testing.T, seed uint64) {
	w := newWorld()
	w.random = rand.New(rand.NewPCG(seed, 1))
	w.policies = []*v1alpha1.HostDeployPolicy{newPolicy("lab", everybody())}
	for i := range machines {
		w.putHost(newHost(fmt.Sprint("host-", i)))
	}
	for i := range claimers {
		w.putClaim(newClaim(fmt.Sprint("claim-", i)))
	}
	time.Sleep(2 * time.Second) // the caches have seen that
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var all sync.WaitGroup
	for replica := range 2 {
		for i := range claimers {
			random := rand.New(rand.NewPCG(seed, uint64(100*replica+i)))
			c := &claimer{seen: cached{behind{w, 2 * time.Second}}, store: w, now: time.Now, random: random.IntN}
			all.Go(func() { strive(ctx, c, fmt.Sprint("claim-", i)) })
		}
	}
	all.Wait()
	for _, wrong := range w.wrongs {
		t.Error(wrong)
	}
	checkShares(t, w)
}

// strive looks at a claim again and again, as a queue does.
func strive(ctx context.Context, c *claimer, name string) {
	for ctx.Err() == nil {
		again, err := c.look(ctx, key("team", name))
		if err != nil || again == 0 {
			again = 5 * time.Second
		}
		select {
		case <-time.After(again):
		case <-ctx.Done():
		}
	}
}

// checkShares wants ten claims to hold one host each, and the others to wait.
func checkShares(t *testing.T, w *world) {
	t.Helper()
	held := map[string]int{}
	for k := range w.hosts {
		h, err := w.Host(t.Context(), k)
		if err != nil {
			t.Fatal(err)
		}
		claim, ok := claimOf(h)
		if !ok {
			t.Errorf("%s is free", h.Name)
			continue
		}
		held[claim.Name]++
		if ref := w.claim(t, claim.Name).Status.BareMetalHost; ref == nil || ref.Name != h.Name {
			t.Errorf("%s has %s and its status says %v", claim.Name, h.Name, ref)
		}
	}
	if len(held) != machines {
		t.Errorf("%d claims have hosts: %v", len(held), held)
	}
	for i := range claimers {
		name := fmt.Sprint("claim-", i)
		want := v1alpha1.NoBareMetalHostReason
		if held[name] > 0 {
			want = v1alpha1.BareMetalHostAssociatedReason
		}
		c := meta.FindStatusCondition(w.claim(t, name).Status.Conditions, v1alpha1.AssociatedCondition)
		if held[name] > 1 || c == nil || c.Reason != want {
			t.Errorf("%s has %d hosts and says %+v", name, held[name], c)
		}
	}
}
