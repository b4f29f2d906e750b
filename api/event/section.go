package event

import (
	"fmt"
	"slices"
	"strings"
)

// Section is a part of a host's state that one service alone writes.
type Section string

// The five sections of a host.
const (
	SectionIntent       Section = "intent"       // what people ask of the host
	SectionRegistration Section = "registration" // the host as a node of its backend
	SectionInspection   Section = "inspection"   // what its hardware is
	SectionProvisioning Section = "provisioning" // what is on its disk
	SectionPower        Section = "power"        // whether it is on
)

// Sections lists the sections in the order in which a host's life uses them.
func Sections() []Section {
	return []Section{SectionIntent, SectionRegistration, SectionInspection, SectionProvisioning, SectionPower}
}

// Writer is the name of the one service that may write the section, and ""
// for a section that is not one of ours.
func (s Section) Writer() string {
	switch s {
	case SectionIntent:
		return "projector"
	case SectionRegistration:
		return "registrar"
	case SectionInspection:
		return "inspector"
	case SectionProvisioning:
		return "provisioner"
	case SectionPower:
		return "powermonitor"
	default:
		return ""
	}
}

// SectionOf is the section that a service writes; ok is false for a service
// that writes none.
func SectionOf(service string) (s Section, ok bool) {
	i := slices.IndexFunc(Sections(), func(s Section) bool { return s.Writer() == service })
	if i < 0 {
		return "", false
	}
	return Sections()[i], true
}

const (
	typePrefix = "io.metalbus.host."
	typeSuffix = ".v1"
	schemaBase = "https://raw.githubusercontent.com/metalbus/metalbus/main/api/event/schemas/"
)

// Type is the CloudEvents type of a fact of a section:
// io.metalbus.host.<section>.<fact>.v1.
func Type(s Section, fact string) string {
	return typePrefix + string(s) + "." + fact + typeSuffix
}

// ParseType is the inverse of Type. Its error names the type.
func ParseType(t string) (Section, string, error) {
	body, ok := strings.CutPrefix(t, typePrefix)
	if ok {
		body, ok = strings.CutSuffix(body, typeSuffix)
	}
	section, fact, found := strings.Cut(body, ".")
	if !ok || !found || Section(section).Writer() == "" || fact == "" {
		return "", "", fmt.Errorf("event type %q is none of ours: want %s<section>.<fact>%s", t, typePrefix, typeSuffix)
	}
	return Section(section), fact, nil
}

// TypeDeadLetter is the type of a dead letter: a message that a service could
// not handle and set aside.
const TypeDeadLetter = "io.metalbus.deadletter.recorded.v1"

// DataSchema is the address of the JSON Schema of the data of a section's events.
func DataSchema(s Section) string { return schemaBase + string(s) + ".v1.json" }

// Source is the CloudEvents source of a service of a cluster:
// /metal/<cluster>/<service>.
func Source(cluster, service string) string { return "/metal/" + cluster + "/" + service }

// ID is the deterministic CloudEvents id of a host's event: <uid>/<hostrev>/<fact>.
// A repeated append of the same decision has the same id.
func ID(uid string, hostRev uint64, fact string) string {
	return fmt.Sprintf("%s/%d/%s", uid, hostRev, fact)
}

// The CloudEvents extensions that a host's event carries. Their names are
// lower case letters only, as the specification asks.
const (
	ExtHostUID     = "hostuid"       // metadata.uid of the BareMetalHost
	ExtHostRev     = "hostrev"       // revision of the host, gapless over all its sections: the ordering key
	ExtStage       = "stage"         // provisioning state of the host after the event
	ExtCausation   = "causationid"   // id of the event that led to this one
	ExtCorrelation = "correlationid" // id of the operation that the event belongs to
	ExtEpoch       = "epoch"         // identity of the log; another one after a restore from backup
	ExtMinReader   = "minreader"     // lowest feature level of a reader that understands the data
	ExtTraceParent = "traceparent"   // W3C trace context
	ExtTraceState  = "tracestate"
)
