package kube

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// Who makes Events: the names that tools filter by.
const (
	eventComponent  = "metal3-baremetal-controller"
	eventController = "metal3.io/baremetal-controller"
)

const (
	// queued is how many Events of each kind wait at most; more are dropped.
	queued = 20_000
	// eventText and nameText are how long a message and a name may be.
	eventText = 1024
	nameText  = 200
)

// News is something that the users of a host should hear of.
type News struct {
	// ID tells this news from all other news of the host. News that are told
	// again under their old ID make no second Event.
	ID      string
	Reason  string
	Message string
	// Warning: something is wrong.
	Warning bool
	At      time.Time
}

// Announcer makes Kubernetes Events, some time after they were told of and no
// more than so many a second, warnings first. An Event that cannot be made is
// counted and forgotten: whatever matters is in the status too.
type Announcer struct {
	client  client.Client
	limit   *rate.Limiter
	metrics *metrics
	log     *slog.Logger
	busy    func() bool
	urgent  chan *corev1.Event
	others  chan *corev1.Event
}

func newAnnouncer(c client.Client, perSecond int, m *metrics, log *slog.Logger) *Announcer {
	return &Announcer{
		client: c, busy: func() bool { return false }, limit: rate.NewLimiter(rate.Limit(perSecond), 2*perSecond), metrics: m, log: log,
		urgent: make(chan *corev1.Event, queued), others: make(chan *corev1.Event, queued),
	}
}

// Reporter is whose news are of a kind of object beside hosts, in the names that
// tools filter by.
type Reporter struct{ Kind, Component, Controller string }

// Tell queues an Event about a host. It never waits.
func (a *Announcer) Tell(o *v1alpha1.BareMetalHost, n News) {
	e := newEvent(Reporter{"BareMetalHost", eventComponent, eventController}, o, n)
	e.Related = o.Spec.ConsumerRef
	a.queue(e)
}

// TellOf queues an Event about an object of another kind. It never waits.
func (a *Announcer) TellOf(r Reporter, o client.Object, n News) { a.queue(newEvent(r, o, n)) }

func (a *Announcer) queue(e *corev1.Event) {
	to := a.others
	if e.Type == corev1.EventTypeWarning {
		to = a.urgent
	}
	select {
	case to <- e:
	default:
		a.metrics.dropped.WithLabelValues("queue full").Inc()
	}
}

func newEvent(r Reporter, o client.Object, n News) *corev1.Event {
	at := metav1.NewTime(n.At.Truncate(time.Second))
	sum := sha256.Sum256([]byte(string(o.GetUID()) + "/" + n.ID))
	e := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: cut(o.GetName(), nameText) + "." + hex.EncodeToString(sum[:8])},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: r.Kind, Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(),
		},
		Reason: n.Reason, Message: cut(n.Message, eventText), Type: corev1.EventTypeNormal,
		Source: corev1.EventSource{Component: r.Component}, ReportingController: r.Controller,
		FirstTimestamp: at, LastTimestamp: at, Count: 1,
	}
	if n.Warning {
		e.Type = corev1.EventTypeWarning
	}
	return e
}

func cut(text string, to int) string {
	if len(text) <= to {
		return text
	}
	return text[:to]
}

// Run makes the Events that were told of until ctx ends.
func (a *Announcer) Run(ctx context.Context) {
	for {
		e := a.next(ctx)
		if e == nil || a.limit.Wait(ctx) != nil {
			return
		}
		a.giveWay(ctx, e)
		a.make(ctx, e)
	}
}

// While the API is busy an Event that is no warning waits for longestWay at most, and
// looks every lookAgain whether it still is.
const (
	longestWay = time.Second
	lookAgain  = 50 * time.Millisecond
)

// giveWay lets writes to hosts go first.
func (a *Announcer) giveWay(ctx context.Context, e *corev1.Event) {
	for waited := time.Duration(0); e.Type != corev1.EventTypeWarning && a.busy() && waited < longestWay; waited += lookAgain {
		select {
		case <-time.After(lookAgain):
		case <-ctx.Done():
			return
		}
	}
}

func (a *Announcer) next(ctx context.Context) *corev1.Event {
	select {
	case e := <-a.urgent:
		return e
	default:
	}
	select {
	case e := <-a.urgent:
		return e
	case e := <-a.others:
		return e
	case <-ctx.Done():
		return nil
	}
}

func (a *Announcer) make(ctx context.Context, e *corev1.Event) {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	err := a.client.Create(ctx, e)
	if isExists(err) {
		err = nil
	}
	err = translate("make an Event", err)
	a.metrics.wrote(writeEvent, err)
	if err != nil {
		a.metrics.dropped.WithLabelValues("refused").Inc()
		a.log.Debug("an Event was refused", keyHost, e.Namespace+"/"+e.InvolvedObject.Name, keyError, err)
	}
}
