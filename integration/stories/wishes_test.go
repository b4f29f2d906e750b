package stories_test

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// wishes are the objects beside a host by which its user asks for something.
type wishes interface {
	// dataImage makes the host's DataImage, or changes it; "" deletes it.
	dataImage(url string)
	// image is the host's DataImage, nil if there is none.
	image() *v1alpha1.DataImage
	// subscribe makes a subscription to the events of the host's BMC, unsubscribe
	// deletes it, and subscription is what it is like, nil if there is none.
	subscribe(name string)
	unsubscribe(name string)
	subscription(name string) *v1alpha1.BMCEventSubscription
}

// ask carries out the lines that are about such objects.
func (r *script) ask(kind string, args []string) error {
	switch {
	case kind == "dataimage" && len(args) == 1 && args[0] == "gone":
		r.site.dataImage("")
	case kind == "dataimage" && len(args) == 1:
		r.site.dataImage(args[0])
	case kind == "subscribe" && len(args) == 1:
		r.site.subscribe(args[0])
	case kind == "unsubscribe" && len(args) == 1:
		r.site.unsubscribe(args[0])
	default:
		return fmt.Errorf("%s %q: want one URL, or gone; or one name", kind, args)
	}
	return nil
}

// wishCondition reads a condition of such an object, nil if the word is none:
//
//	image=URL     that is shown to be in the drive; image= nothing
//	image-failed image-well     whether the newest try was in vain
//	no-image      there is no DataImage
//	subscribed=NAME unsubscribed=NAME    it is shown to be made, or to have failed
//	no-subscription=NAME  there is none of that name
func wishCondition(word string, w wishes) ofObject {
	image := func(ok func(*v1alpha1.DataImage) bool) ofObject {
		return func(*v1alpha1.BareMetalHost) bool {
			d := w.image()
			return d != nil && ok(d)
		}
	}
	if key, name, ok := strings.Cut(word, "="); ok && key != "image" {
		return subscriptionCondition(key, name, w)
	}
	if url, ok := strings.CutPrefix(word, "image="); ok {
		return image(func(d *v1alpha1.DataImage) bool { return d.Status.AttachedImage.URL == url })
	}
	switch word {
	case "image-failed":
		return image(func(d *v1alpha1.DataImage) bool { return d.Status.Error.Count > 0 && d.Status.Error.Message != "" })
	case "image-well":
		return image(func(d *v1alpha1.DataImage) bool { return d.Status.Error == v1alpha1.DataImageError{} })
	case "no-image":
		return func(*v1alpha1.BareMetalHost) bool { return w.image() == nil }
	default:
		return nil
	}
}

func subscriptionCondition(key, name string, w wishes) ofObject {
	is := map[string]func(*v1alpha1.BMCEventSubscription) bool{
		"subscribed": func(s *v1alpha1.BMCEventSubscription) bool {
			return s != nil && s.Status.SubscriptionID != "" && s.Status.Error == ""
		},
		"unsubscribed": func(s *v1alpha1.BMCEventSubscription) bool {
			return s != nil && s.Status.SubscriptionID == "" && s.Status.Error != ""
		},
		"no-subscription": func(s *v1alpha1.BMCEventSubscription) bool { return s == nil },
	}[key]
	if is == nil {
		return nil
	}
	return func(*v1alpha1.BareMetalHost) bool { return is(w.subscription(name)) }
}

// disc is a DataImage in a story that is told by the table alone.
type disc struct {
	url      string
	deleting bool
}

func (m *memory) dataImage(url string) {
	switch {
	case url != "":
		m.disc = &disc{url: url}
	case m.disc != nil:
		m.disc.deleting = true
	}
	m.hear()
}

func (m *memory) image() *v1alpha1.DataImage {
	if m.disc == nil || (m.disc.deleting && !lifecycle.MediaHeld(m.host)) {
		return nil
	}
	cd := m.host.Provisioning.Media
	d := &v1alpha1.DataImage{Spec: v1alpha1.DataImageSpec{URL: m.disc.url}}
	d.Status.AttachedImage.URL = cd.URL
	if cd.Problem != nil {
		d.Status.Error = v1alpha1.DataImageError{Count: cd.Failures, Message: cd.Problem.Message}
	}
	return d
}

// wanted is what the disc asks of a host.
func (d *disc) wanted() *event.DataImageWish {
	if d == nil || d.deleting {
		return nil
	}
	return &event.DataImageWish{URL: d.url}
}

func (p *play) dataImage(url string) {
	p.t.Helper()
	d := &v1alpha1.DataImage{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: p.name}}
	switch there := p.user.Read(d); {
	case url == "":
		p.user.Delete(d)
	case there:
		d.Spec.URL = url
		p.user.Update(d)
	default:
		d.Spec.URL = url
		p.user.Create(d)
	}
	if o := p.shown(); o == nil || o.Annotations[v1alpha1.PausedAnnotation] != "" {
		return
	}
	p.awaited("the DataImage to be heard of", func() bool {
		p.follow()
		asked := p.past[len(p.past)-1].Intent.DataImage
		if asked == nil {
			return url == "" || p.shown() == nil
		}
		return asked.URL == url
	})
}

func (p *play) image() *v1alpha1.DataImage {
	d := &v1alpha1.DataImage{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: p.name}}
	if !p.user.Read(d) {
		return nil
	}
	return d
}

// receiver is what a story subscribes to.
func receiver(host, name string) v1alpha1.BMCEventSubscriptionSpec {
	return v1alpha1.BMCEventSubscriptionSpec{HostName: host, Destination: "https://192.0.2.90/" + name, Context: name}
}

func (m *memory) subscribe(name string) {
	spec := receiver("", name)
	m.asked = append(m.asked[:len(m.asked):len(m.asked)], event.SubscriptionWish{UID: name, Name: name, Destination: spec.Destination, Context: spec.Context})
	m.hear()
}

func (m *memory) unsubscribe(name string) {
	m.asked = slices.DeleteFunc(slices.Clone(m.asked), func(w event.SubscriptionWish) bool { return w.UID == name })
	m.hear()
}

func (m *memory) subscription(name string) *v1alpha1.BMCEventSubscription {
	if !lifecycle.SubscriptionHeld(m.host, name) {
		return nil
	}
	s := &v1alpha1.BMCEventSubscription{}
	for _, known := range m.host.Power.Subscriptions {
		if known.UID != name {
			continue
		}
		s.Status.SubscriptionID = known.ID
		if known.Problem != nil {
			s.Status.Error = known.Problem.Message
		}
	}
	return s
}

func (p *play) subscribe(name string) {
	p.t.Helper()
	p.user.Create(&v1alpha1.BMCEventSubscription{ObjectMeta: metav1.ObjectMeta{Name: p.own(name)}, Spec: receiver(p.name, name)})
	p.asked(name, true)
}

// own is the name of an object that no other story has.
func (p *play) own(name string) string { return p.name + "-" + name }

func (p *play) unsubscribe(name string) {
	p.t.Helper()
	p.user.Delete(&v1alpha1.BMCEventSubscription{ObjectMeta: metav1.ObjectMeta{Name: p.own(name)}})
	p.asked(name, false)
}

// asked waits until the bus knows whether a subscription is asked for.
func (p *play) asked(name string, want bool) {
	p.t.Helper()
	if o := p.shown(); o == nil || o.Annotations[v1alpha1.PausedAnnotation] != "" {
		return
	}
	p.awaited("the subscription to be heard of", func() bool {
		p.follow()
		there := slices.ContainsFunc(p.past[len(p.past)-1].Intent.Subscriptions, func(w event.SubscriptionWish) bool { return w.Name == p.own(name) })
		return there == want || p.shown() == nil
	})
}

func (p *play) subscription(name string) *v1alpha1.BMCEventSubscription {
	s := &v1alpha1.BMCEventSubscription{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: p.own(name)}}
	if !p.user.Read(s) {
		return nil
	}
	return s
}

// eventsTo says in a look where a BMC sends its events.
func eventsTo(receivers []string) string {
	if len(receivers) == 0 {
		return ""
	}
	slices.Sort(receivers)
	return ", events to " + strings.Join(receivers, " and ")
}
