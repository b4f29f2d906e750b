package redfish

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/bmc"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// machine is the handle on a host's BMC.
func (b *Backend) machine(ctx context.Context, k event.Kind, h lifecycle.Host) (controller, error) {
	address, err := parse(h)
	if err != nil {
		return nil, err
	}
	credentials, err := b.logins.of(ctx, h)
	if err != nil {
		return nil, err
	}
	if !address.IsRedfish() {
		port, err := strconv.Atoi(address.PortOrDefault())
		if err != nil {
			return nil, fmt.Errorf("port of %s: %w", address, err)
		}
		return b.pool.IPMI(bmc.IPMITarget{Host: address.Host, Port: port, Credentials: credentials})
	}
	target := bmc.Target{
		BaseURL: address.BaseURL(), SystemPath: address.SystemPath(), Credentials: credentials, InsecureSkipVerify: address.SkipVerify,
	}
	if k == event.Enroll && retried(h) {
		b.pool.Forget(target)
	}
	return b.pool.BMC(target)
}

// retried: the user says that the same credentials may work now.
func retried(h lifecycle.Host) bool {
	asked, answered := h.Newest(event.SectionIntent), h.Newest(event.SectionRegistration)
	return asked.Fact == event.RetryRequested && asked.Rev > answered.Rev
}

// keepLogins is how long credentials that were read are used without a look at
// their Secret. Another version of the Secret is another key, so a change is
// never missed.
const keepLogins = 10 * time.Minute

// logins spares the API server a read for each look at a BMC.
type logins struct {
	secrets Secrets
	now     func() time.Time

	mu   sync.Mutex
	kept map[event.SecretRef]login
}

type login struct {
	bmc.Credentials
	until time.Time
}

func newLogins(s Secrets, now func() time.Time) *logins {
	return &logins{secrets: s, now: now, kept: map[event.SecretRef]login{}}
}

// of are the credentials of the host in the version that its intent names.
func (l *logins) of(ctx context.Context, h lifecycle.Host) (bmc.Credentials, error) {
	ref := h.Intent.Credentials
	ref.MissingSince = time.Time{}
	now := l.now()
	l.mu.Lock()
	kept, ok := l.kept[ref]
	l.mu.Unlock()
	if ok && now.Before(kept.until) {
		return kept.Credentials, nil
	}
	user, password, err := l.secrets.Credentials(ctx, ref.Namespace, ref.Name)
	if err != nil {
		return bmc.Credentials{}, err
	}
	fresh := login{bmc.NewCredentials(user, password), now.Add(keepLogins)}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(now)
	l.kept[ref] = fresh
	return fresh.Credentials, nil
}

// drop forgets what is out of date, once there is much of it.
func (l *logins) drop(now time.Time) {
	const much = 1024
	if len(l.kept)%much != much-1 {
		return
	}
	for ref, k := range l.kept {
		if !now.Before(k.until) {
			delete(l.kept, ref)
		}
	}
}
