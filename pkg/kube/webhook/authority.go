package webhook

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// authorityEvery is how often the Secret and the configuration are looked
	// at, beside the times that a watch tells of a change.
	authorityEvery = 5 * time.Minute
	// requestTime bounds a request to the API.
	requestTime = 15 * time.Second
	// attempts is how often replicas may get in each other's way in a row.
	attempts = 5
)

// authority makes the certificate, keeps it in a Secret for all replicas, and
// tells the Kubernetes API whom to trust.
type authority struct {
	cfg    Config
	client client.WithWatch
	log    *slog.Logger
	now    func() time.Time
}

func (a *authority) every() time.Duration { return authorityEvery }

// fetch is the certificate in the Secret, made or renewed if it is time. The
// authority is in the webhook's configuration before the certificate is shown.
func (a *authority) fetch(ctx context.Context) (*tls.Certificate, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	held, err := a.shared(ctx)
	if err != nil {
		return nil, err
	}
	if err := a.publish(ctx, encodeCertificates(held.bundle...)); err != nil {
		return nil, err
	}
	return &held.serving, nil
}

// shared are the keys that all replicas have agreed on.
func (a *authority) shared(ctx context.Context) (keys, error) {
	var err error
	for range attempts {
		var held keys
		if held, err = a.renew(ctx); err == nil || !raced(err) {
			return held, err
		}
	}
	return keys{}, err
}

// raced: another replica was faster, and has done what was to be done.
func raced(err error) bool { return apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) }

// renew reads the Secret, and writes it if it is not what it should be, on the
// condition that nobody else has written it meanwhile.
func (a *authority) renew(ctx context.Context) (keys, error) {
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = a.cfg.Namespace, a.cfg.Secret
	name := secret.Namespace + "/" + secret.Name
	err := a.client.Get(ctx, client.ObjectKeyFromObject(secret), secret)
	if client.IgnoreNotFound(err) != nil {
		return keys{}, fmt.Errorf("read the Secret %s of the webhook: %w", name, err)
	}
	var held keys
	isNew := err != nil
	if !isNew {
		if held, err = parseKeys(secret.Data); err != nil {
			a.log.Warn("what the Secret of the webhook holds is of no use and is made anew", keyObject, name, keyError, err)
			held = keys{}
		}
	}
	next, err := renewed(held, a.cfg.hosts(), a.now())
	if err != nil || next.same(held) {
		return next, err
	}
	if secret.Data, err = next.encode(); err != nil {
		return keys{}, err
	}
	if isNew {
		secret.Type = corev1.SecretTypeTLS
		err = a.client.Create(ctx, secret)
	} else {
		err = a.client.Update(ctx, secret)
	}
	if err != nil {
		return keys{}, fmt.Errorf("write the Secret %s of the webhook: %w", name, err)
	}
	return next, nil
}

// watch tells of changes of the Secret and of the webhook's configurations.
func (a *authority) watch(ctx context.Context, changed func()) {
	var all sync.WaitGroup
	all.Go(func() {
		a.follow(ctx, &corev1.SecretList{}, a.cfg.Secret, changed, client.InNamespace(a.cfg.Namespace))
	})
	for _, name := range []string{ConfigurationName, GuardName} {
		all.Go(func() { a.follow(ctx, &admissionregistrationv1.ValidatingWebhookConfigurationList{}, name, changed) })
	}
	all.Wait()
}

// follow tells of changes of one object until ctx ends.
func (a *authority) follow(ctx context.Context, list client.ObjectList, name string, changed func(), opts ...client.ListOption) {
	opts = append(opts, client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", name)})
	for ctx.Err() == nil {
		events, err := a.client.Watch(ctx, list, opts...)
		if err == nil {
			drain(ctx, events, changed)
		} else if ctx.Err() == nil {
			a.log.Debug("a watch of the webhook's objects failed", keyObject, name, keyError, err)
		}
		wait(ctx, nil, lastRetry) // a look every authorityEvery goes on meanwhile
	}
}

// drain tells of events until there are no more.
func drain(ctx context.Context, events watch.Interface, changed func()) {
	defer events.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case _, more := <-events.ResultChan():
			changed() // after the last one too: something may be missed now
			if !more {
				return
			}
		}
	}
}
