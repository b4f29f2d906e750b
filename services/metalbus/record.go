package metalbus

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/cloudevents/sdk-go/v2/types"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
)

// record is an event of a host, as people look at it.
type record struct {
	At      time.Time
	Host    string // <namespace>/<name>
	UID     string
	Rev     uint64
	Section event.Section
	Fact    string
	// Stage is the host's state after the event.
	Stage  v1alpha1.ProvisioningState
	Change event.Change
	Op     *event.Op
}

// readRecord reads what is there: an event of a newer version may lack some.
func readRecord(e cloudevents.Event) record {
	r := record{At: e.Time(), Host: e.Subject(), UID: extension(e, event.ExtHostUID), Stage: v1alpha1.ProvisioningState(extension(e, event.ExtStage))}
	if rev, err := types.ToInteger(e.Extensions()[event.ExtHostRev]); err == nil {
		r.Rev = uint64(max(0, rev))
	}
	var err error
	if r.Section, r.Fact, err = event.ParseType(e.Type()); err != nil {
		r.Fact = e.Type()
	}
	var data event.Data[json.RawMessage]
	if json.Unmarshal(e.Data(), &data) == nil {
		r.Change, r.Op = data.Change, data.Op
	}
	return r
}

func extension(e cloudevents.Event, name string) string {
	text, err := types.Format(e.Extensions()[name])
	if err != nil {
		return ""
	}
	return text
}

// what says what happened: the short type of the event, and why it came to it.
func (r record) what() string {
	text := string(r.Section) + "." + r.Fact
	if r.Section == "" {
		text = r.Fact
	}
	if r.Op != nil && event.UnderWay(r.Fact) && r.Op.Step != "" && r.Op.Step != string(r.Op.Kind) {
		text += " (" + r.Op.Step + ")"
	}
	if why := words(r.Change); why != "" {
		text += ": " + why
	}
	return text
}

func words(c event.Change) string {
	parts := []string{c.Reason, c.Message}
	if c.Reason == "" || c.Message == "" {
		return strings.Join(parts, "")
	}
	return strings.Join(parts, ": ")
}

// line is the record as a line of text.
func (r record) line() string {
	return fmt.Sprintf("%s  %-24s #%-4d %-14s %s", stamp(r.At), r.Host, r.Rev, state(r.Stage), r.what())
}

// stamp is a time to the millisecond, in UTC as everything on the bus.
func stamp(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }

// state is how a state is shown.
func state(s v1alpha1.ProvisioningState) string {
	if s == v1alpha1.StateNone {
		return "-"
	}
	return string(s)
}
