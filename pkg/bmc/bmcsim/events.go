package bmcsim

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

const (
	streamPath    = "EventService/SSE"
	keepAlive     = 30 * time.Second // between signs of life on a silent stream
	streamBacklog = 64               // events that a slow reader may lag behind
	pushAttempts  = 3
)

// fans are those who listen to one host: open streams and subscriptions.
type fans struct {
	streams map[*stream]struct{}
	subs    []*subscription
	lastSub int
	lastID  int
}

// stream is one open event stream. It shows the host under the id of the address
// where it was opened.
type stream struct {
	events chan []byte
	origin string
}

// subscription is a receiver that events are posted to.
type subscription struct {
	ID          int                 `json:"id"`
	Destination string              `json:"destination"`
	Context     string              `json:"context"`
	Headers     []map[string]string `json:"headers,omitempty"` // secret
	Origin      string              `json:"origin"`
}

// drop ends all streams.
func (f *fans) drop() {
	for s := range f.streams {
		close(s.events)
	}
	f.streams = nil
}

// eventBody is a Redfish event of one record.
func (h *Host) eventBody(id int, context, origin, message, text string) []byte {
	n := strconv.Itoa(id)
	b, err := json.Marshal(obj{
		"@odata.type": "#Event.v1_7_0.Event", "Id": n, "Name": "Event Array", "Context": context,
		"Events": []obj{{
			"EventType": "StatusChange", "EventId": n, "MemberId": "0", "EventTimestamp": h.sim.cfg.Now().UTC().Format(time.RFC3339), "Severity": "OK", "MessageSeverity": "OK",
			"MessageId": message, "Message": text, "OriginOfCondition": link{origin},
		}},
	})
	if err != nil {
		panic("bmcsim: an event is no JSON: " + err.Error())
	}
	return b
}

// powerEvent tells all listeners that the power has changed. The caller holds h.mu.
func (h *Host) powerEvent() {
	message, text := "ResourceEvent.1.3.ResourcePoweredOff", "The resource has powered off."
	if h.machine.on {
		message, text = "ResourceEvent.1.3.ResourcePoweredOn", "The resource has powered on."
	}
	h.tell(message, text)
}

// tell sends an event to all listeners. Who does not read loses events, and nobody
// waits for him. The caller holds h.mu.
func (h *Host) tell(message, text string) {
	f := &h.fans
	if len(f.streams) == 0 && len(f.subs) == 0 || h.faults.Down {
		return
	}
	f.lastID++
	for s := range f.streams {
		select {
		case s.events <- h.eventBody(f.lastID, "", s.origin, message, text):
		default:
		}
	}
	if h.sim.ctx.Err() != nil {
		return
	}
	for _, s := range f.subs {
		body := h.eventBody(f.lastID, s.Context, s.Origin, message, text)
		h.sim.tasks.Go(func() { h.sim.deliver(*s, body) })
	}
}

// deliver posts an event, a few times if it has to.
func (s *Sim) deliver(to subscription, body []byte) {
	select {
	case s.push <- struct{}{}:
		defer func() { <-s.push }()
	case <-s.ctx.Done():
		return
	}
	for n := range pushAttempts {
		if n > 0 {
			sleep(s.ctx, time.Second<<(n-1))
		}
		if s.ctx.Err() != nil || s.post(to, body) {
			return
		}
	}
}

func (s *Sim) post(to subscription, body []byte) bool {
	ctx, cancel := context.WithTimeout(s.ctx, pushTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.Destination, bytes.NewReader(body))
	if err != nil {
		return true // it never will work
	}
	req.Header.Set("Content-Type", "application/json")
	for _, h := range to.Headers {
		for k, v := range h {
			req.Header.Set(k, v)
		}
	}
	resp, err := s.cfg.Events.Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close() // its status is all that counts
	return resp.StatusCode < http.StatusMultipleChoices
}

func getEventService(c *call) answer {
	b := c.resource("EventService.v1_7_0.EventService", "EventService", "Event Service")
	b["ServiceEnabled"], b["Status"], b["DeliveryRetryAttempts"], b["DeliveryRetryIntervalSeconds"] = true, enabled(), pushAttempts, 1
	b["EventTypesForSubscription"] = []string{"StatusChange", "ResourceUpdated", "ResourceAdded", "ResourceRemoved", "Alert"}
	b["ServerSentEventUri"], b["Subscriptions"] = c.at("EventService", "SSE"), c.link("EventService", "Subscriptions")
	b["Actions"] = obj{"#EventService.SubmitTestEvent": obj{"target": c.at("EventService", "Actions", "EventService.SubmitTestEvent")}}
	return ok(b)
}

// getStream opens a stream of server-sent events of the caller's host.
func getStream(c *call) answer {
	if c.host == nil {
		return oneHost()
	}
	s := &stream{events: make(chan []byte, streamBacklog), origin: c.system()}
	c.host.mu.Lock()
	if c.host.fans.streams == nil {
		c.host.fans.streams = map[*stream]struct{}{}
	}
	c.host.fans.streams[s] = struct{}{}
	c.host.mu.Unlock()
	return answer{status: http.StatusOK, stream: func(w http.ResponseWriter, r *http.Request) {
		c.host.feed(s, w, r)
		c.host.mu.Lock()
		delete(c.host.fans.streams, s)
		c.host.mu.Unlock()
	}}
}

// feed writes a stream until the reader goes, the BMC goes down or the simulator
// is closed.
func (h *Host) feed(s *stream, w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	out := http.NewResponseController(w)
	alive := time.NewTicker(keepAlive)
	defer alive.Stop()
	for n := 1; ; n++ {
		if out.Flush() != nil {
			return
		}
		select {
		case e, more := <-s.events:
			if !more {
				panic(http.ErrAbortHandler)
			}
			_, _ = fmt.Fprintf(w, "id: %d\ndata: %s\n\n", n, e) // Flush tells if the reader is gone
		case <-alive.C:
			_, _ = fmt.Fprint(w, ": alive\n\n") // likewise
		case <-r.Context().Done():
			return
		case <-h.sim.ctx.Done():
			return
		}
	}
}

func (c *call) subBody(s *subscription) obj {
	id := strconv.Itoa(s.ID)
	return obj{
		"@odata.id": c.at("EventService", "Subscriptions", id), "@odata.type": "#EventDestination.v1_11_0.EventDestination", "Id": id, "Name": "Subscription " + id,
		"Destination": s.Destination, "Context": s.Context, "Protocol": "Redfish", "SubscriptionType": "RedfishEvent", "EventFormatType": "Event",
	}
}

func (c *call) subs() []*subscription {
	if c.host == nil {
		return nil
	}
	c.host.mu.Lock()
	defer c.host.mu.Unlock()
	return slices.Clone(c.host.fans.subs)
}

func getSubscriptions(c *call) answer {
	var ids []string
	for _, s := range c.subs() {
		ids = append(ids, strconv.Itoa(s.ID))
	}
	return c.collection("EventDestination", "Event Subscriptions Collection", ids...)
}

func getSubscription(c *call) answer {
	for _, s := range c.subs() {
		if strconv.Itoa(s.ID) == c.id(0) {
			return ok(c.subBody(s))
		}
	}
	return missing(root + "/" + c.path)
}

type newSubscription struct {
	Destination string
	Context     string
	Protocol    string
	HTTPHeaders []map[string]string `json:"HttpHeaders"`
}

func postSubscription(c *call) answer {
	if c.host == nil {
		return oneHost()
	}
	var in newSubscription
	if a, readable := c.body(&in); !readable {
		return a
	}
	c.note("Subscribe", map[string]string{"Destination": v1alpha1.WithoutLogin(in.Destination), "Context": in.Context})
	u, err := url.Parse(in.Destination)
	if err != nil || u.Host == "" || !strings.HasPrefix(u.Scheme, "http") {
		return refuse(http.StatusBadRequest, "PropertyValueFormatError", "The Destination is no http or https address.", "Destination")
	}
	origin := c.system()
	c.host.mu.Lock()
	defer c.host.mu.Unlock()
	f := &c.host.fans
	f.lastSub++
	s := &subscription{ID: f.lastSub, Destination: in.Destination, Context: in.Context, Headers: in.HTTPHeaders, Origin: origin}
	f.subs = append(f.subs, s)
	c.host.touch()
	return answer{status: http.StatusCreated, body: c.subBody(s), location: c.at("EventService", "Subscriptions", strconv.Itoa(s.ID))}
}

func deleteSubscription(c *call) answer {
	if c.host == nil {
		return oneHost()
	}
	c.note("Unsubscribe", map[string]string{"Subscription": c.id(0)})
	c.host.mu.Lock()
	defer c.host.mu.Unlock()
	f := &c.host.fans
	before := len(f.subs)
	f.subs = slices.DeleteFunc(f.subs, func(s *subscription) bool { return strconv.Itoa(s.ID) == c.id(0) })
	if len(f.subs) == before {
		return missing(root + "/" + c.path)
	}
	c.host.touch()
	return done()
}

func postTestEvent(c *call) answer {
	if c.host == nil {
		return oneHost()
	}
	c.note("SubmitTestEvent", nil)
	c.host.mu.Lock()
	defer c.host.mu.Unlock()
	c.host.tell("ResourceEvent.1.3.TestMessage", "This is a test.")
	return done()
}

// Subscriptions are the destinations of the subscriptions to the host's events.
func (h *Host) Subscriptions() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []string
	for _, s := range h.fans.subs {
		all = append(all, s.Destination)
	}
	return all
}
