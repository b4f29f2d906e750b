package bus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/nats-io/nats.go"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// readerLevel is what this version understands. A change of an event that
// older readers would misunderstand raises it and sets minreader.
const readerLevel = 1

// maxData bounds the payload of an event. The stream takes no more than that either.
const maxData = 64 << 10

// record is one stored event of a host, decoded.
type record struct {
	section event.Section
	meta    lifecycle.Meta
	state   any
	time    string // as it is in the header: with the id it tells events apart
}

// errForeign: the section was written by somebody who does not own it.
var errForeign = errors.New("written by somebody else than the section's service")

// decodeRecord is parseRecord with the cache before it.
func (b *Bus) decodeRecord(m stored) (record, error) {
	if r, ok := b.cache.get(m.seq); ok && r.is(m) {
		return r, nil
	}
	r, err := b.parseRecord(m)
	if err == nil {
		b.cache.put(m.seq, r)
	}
	return r, err
}

// is reports whether the record is that of the message. A log that lost its end gives
// the same sequences to other events.
func (r record) is(m stored) bool {
	return r.meta.ID == attr(m.header, "id") && r.time == attr(m.header, "time")
}

// parseRecord reads a stored event of a host. A message with another source
// than its section's writer is errForeign; one of a section that this version
// does not know has an empty section.
func (b *Bus) parseRecord(m stored) (record, error) {
	uid, token, ok := lastTokens(m.subject)
	section := event.Section(token)
	if !ok || section.Writer() == "" {
		return record{}, nil
	}
	if attr(m.header, "source") != event.Source(b.cfg.Cluster, section.Writer()) {
		return record{}, errForeign
	}
	if n, _ := strconv.Atoi(attr(m.header, event.ExtMinReader)); n > readerLevel {
		return record{}, &NewerError{UID: uid, Section: section, Needs: n}
	}
	r := record{section: section}
	err := r.read(m)
	if err != nil {
		return record{}, &BadEventError{UID: uid, Section: section, Seq: m.seq, Cause: err}
	}
	return r, nil
}

func (r *record) read(m stored) (err error) {
	if r.meta, err = readMeta(m.header, m.seq); err != nil {
		return err
	}
	r.time = attr(m.header, "time")
	r.state, r.meta.Extra, err = readState(r.section, m.data)
	return err
}

func readMeta(h nats.Header, seq uint64) (lifecycle.Meta, error) {
	if newEventReader(h, nil).version == nil {
		return lifecycle.Meta{}, fmt.Errorf("CloudEvents version %q", header(h, attrVersion))
	}
	rev, err := strconv.ParseUint(attr(h, event.ExtHostRev), 10, 64)
	if err != nil || rev == 0 {
		return lifecycle.Meta{}, fmt.Errorf("extension %s %q", event.ExtHostRev, attr(h, event.ExtHostRev))
	}
	at, err := time.Parse(time.RFC3339Nano, attr(h, "time"))
	if err != nil {
		return lifecycle.Meta{}, err
	}
	before := header(h, sectionBeforeHeader)
	m := lifecycle.Meta{Seq: seq, Prev: previous(h), First: before == "0", Rev: rev, ID: attr(h, "id"), Fact: factOf(attr(h, "type")), At: at}
	m.Before, _ = strconv.ParseUint(before, 10, 64)
	return m, nil
}

// sectionBeforeHeader has the sequence of the section's event before, "0" if there is
// none. It is none of the event's attributes, since it means something in this stream
// only. Older logs lack it.
const sectionBeforeHeader = "Metalbus-Section-Before"

// factOf is the fact in an event's type. Types that are not ours are no error:
// the state in the data counts.
func factOf(eventType string) string {
	if _, fact, err := event.ParseType(eventType); err == nil {
		return fact
	}
	return eventType
}

func previous(h nats.Header) uint64 {
	n, _ := strconv.ParseUint(header(h, nats.ExpectedLastSubjSeqHdr), 10, 64)
	return n
}

func readState(s event.Section, data []byte) (state any, extra []byte, err error) {
	switch s {
	case event.SectionIntent:
		return readData[event.Intent](data)
	case event.SectionRegistration:
		return readData[event.Registration](data)
	case event.SectionInspection:
		return readData[event.Inspection](data)
	case event.SectionProvisioning:
		return readData[event.Provisioning](data)
	case event.SectionPower:
		return readData[event.Power](data)
	default:
		return nil, nil, fmt.Errorf("section %q", s)
	}
}

// readData reads the state in an event's data. extra is the state as it was,
// if it holds fields that this version does not know.
func readData[S any](data []byte) (state any, extra []byte, err error) {
	var known event.Data[S]
	strict := json.NewDecoder(bytes.NewReader(data))
	strict.DisallowUnknownFields()
	if strict.Decode(&known) == nil && len(bytes.TrimSpace(data[strict.InputOffset():])) == 0 {
		return known.State, nil, nil
	}
	known = event.Data[S]{}
	if err := json.Unmarshal(data, &known); err != nil {
		return nil, nil, err
	}
	var raw struct {
		State json.RawMessage `json:"state"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, nil, err
	}
	return known.State, raw.State, nil
}

// noState is the state of a section that nothing was recorded in.
func noState(s event.Section) any {
	switch s {
	case event.SectionRegistration:
		return event.Registration{}
	case event.SectionInspection:
		return event.Inspection{}
	case event.SectionProvisioning:
		return event.Provisioning{}
	case event.SectionPower:
		return event.Power{}
	default:
		return event.Intent{}
	}
}

// setState puts a decoded section into the host.
func setState(h *lifecycle.Host, state any) {
	switch s := state.(type) {
	case event.Intent:
		h.Intent = s
	case event.Registration:
		h.Registration = s
	case event.Inspection:
		h.Inspection = s
	case event.Provisioning:
		h.Provisioning = s
	case event.Power:
		h.Power = s
	}
}

// draft is an event on its way to the bus.
type draft struct {
	before, after lifecycle.Host
	fact          lifecycle.Fact
	at            time.Time
	id            string
	// extra is the section's new state if it has fields that this version does not know.
	extra []byte
}

// sectionBefore is the sequence of the section's event before this one, 0 if there is none.
func (d draft) sectionBefore() uint64 { return d.before.Newest(d.fact.Section()).Seq }

// message is the draft as a NATS message.
func (b *Bus) message(ctx context.Context, d *draft) (*nats.Msg, error) {
	section := d.fact.Section()
	data, err := dataOf(d)
	if err != nil {
		return nil, err
	}
	if len(data) > maxData {
		return nil, fmt.Errorf("event %s has %d bytes of data: the bus takes %d", d.id, len(data), maxData)
	}
	e := cloudevents.New()
	e.SetID(d.id)
	e.SetType(event.Type(section, d.fact.Name()))
	e.SetSource(event.Source(b.cfg.Cluster, section.Writer()))
	e.SetSubject(d.after.Name())
	e.SetTime(d.at)
	e.SetDataSchema(event.DataSchema(section))
	e.SetExtension(event.ExtHostUID, d.after.UID)
	e.SetExtension(event.ExtHostRev, int32(min(d.after.Rev, 1<<31-1))) //nolint:gosec // bounded
	if stage := lifecycle.Stage(d.after); stage != "" {
		e.SetExtension(event.ExtStage, string(stage))
	}
	for name, value := range b.linkage(ctx, *d) {
		if value != "" {
			e.SetExtension(name, value)
		}
	}
	setJSON(&e, data)
	m := &nats.Msg{Subject: b.subj.section(d.after.UID, section), Header: make(nats.Header, 20)}
	m.Header[sectionBeforeHeader] = []string{strconv.FormatUint(d.sectionBefore(), 10)}
	return m, writeEvent(ctx, &e, m)
}

// setJSON sets the data of an event to what is JSON already.
func setJSON(e *cloudevents.Event, data []byte) {
	e.SetDataContentType(cloudevents.ApplicationJSON)
	e.DataEncoded = data
}

// linkage are the extensions that tie the event to others.
func (b *Bus) linkage(ctx context.Context, d draft) map[string]string {
	links := map[string]string{event.ExtEpoch: d.after.Epoch}
	if t, ok := triggerOf(ctx); ok {
		links[event.ExtCausation] = t.ID
	}
	if op := opOf(d); op != nil {
		links[event.ExtCorrelation] = op.ID
	}
	injectTrace(ctx, links)
	return links
}

// opOf is the operation that the fact belongs to, also when it has just ended.
func opOf(d draft) *event.Op {
	section := d.fact.Section()
	if op := d.after.Work(section).Op; op != nil {
		return op
	}
	if _, ok := parsePhase(d.fact.Name()); ok {
		return d.before.Work(section).Op
	}
	return nil
}

func dataOf(d *draft) ([]byte, error) {
	section := d.fact.Section()
	state, err := stateOf(d, section)
	if err != nil {
		return nil, err
	}
	return json.Marshal(event.Data[json.RawMessage]{State: state, Change: lifecycle.ChangeOf(d.fact), Op: opOf(*d)})
}

// stateOf is the new state of the section, with the fields of the old one that
// this version does not know.
func stateOf(d *draft, section event.Section) (json.RawMessage, error) {
	value := d.after.State(section)
	if path := secretIn(value); path != "" {
		return nil, fmt.Errorf("section %s holds a secret in %s, which must not be on the bus", section, path)
	}
	state, err := json.Marshal(value)
	extra := d.before.Newest(section).Extra
	if err != nil || extra == nil {
		return state, err
	}
	d.extra, err = keepUnknown(d.before.State(section), extra, state)
	return d.extra, err
}
