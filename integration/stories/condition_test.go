package stories_test

import (
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// parseConditions reads what a line waits for: all of it must hold at once.
//
//	state=S opstatus=S error=TYPE message~TEXT count=N count>=N attempts=N
//	on off op=KIND idle settled detached adopted lost maintained astray undisturbed
//	fact=SECTION.FACT     the newest fact of its section
//	Ready=False/Error     a condition of the status, by status and reason
//	progress~TEXT         the message of the condition Progressing
//	gone                  the object is
//	annotation=KEY no-annotation=KEY
//	wished in-use         its firmware is to be changed, and may be while it is in use
//	seen                  the power that is shown is that of the machine
//	settings:NAME=VALUE   a firmware setting, or a condition of HostFirmwareSettings
//	updates:NAME=VALUE    a component's version, or a condition of HostFirmwareComponents
//	settings~TEXT updates~TEXT  the message of such a condition
//
// and those of wishCondition.
//
// What is settled or seen is so of the newest revision: an earlier one says
// nothing of how things are now.
func parseConditions(words []string, m *site) (condition, error) {
	var c condition
	for _, w := range words {
		c.now = c.now || w == "settled" || w == "seen"
		if w == "seen" {
			c.host = both(c.host, func(h lifecycle.Host) bool {
				return h.Power.On != nil && strings.HasPrefix(m.look(), power(*h.Power.On)+",")
			})
			continue
		}
		if f, ok := firmwareCondition(w); ok {
			c.firmware = both(c.firmware, f)
			continue
		}
		if o := wishCondition(w, m); o != nil {
			c.object = both(c.object, o)
			continue
		}
		h, o, err := parseCondition(w)
		if err != nil {
			return condition{}, err
		}
		c.host = both(c.host, h)
		c.object = both(c.object, o)
	}
	return c, nil
}

// both is the condition that both hold, nil being none.
func both[T any](a, b func(T) bool) func(T) bool {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	default:
		return func(x T) bool { return a(x) && b(x) }
	}
}

type (
	ofHost   = func(lifecycle.Host) bool
	ofObject = func(*v1alpha1.BareMetalHost) bool
)

func parseCondition(word string) (ofHost, ofObject, error) {
	if h, ok := plainConditions()[word]; ok {
		return h, nil, nil
	}
	if word == "gone" {
		forgotten := func(h lifecycle.Host) bool { return h.Newest(event.SectionIntent).Fact == event.Forgotten }
		return forgotten, func(o *v1alpha1.BareMetalHost) bool { return o == nil }, nil
	}
	if key, text, ok := strings.Cut(word, "~"); ok {
		return textCondition(key, text)
	}
	if _, least, ok := strings.Cut(word, "count>="); ok {
		n, err := strconv.Atoi(least)
		return func(h lifecycle.Host) bool { return lifecycle.Status(h).ErrorCount >= n }, nil, err
	}
	key, value, ok := strings.Cut(word, "=")
	if !ok {
		return nil, nil, fmt.Errorf("%q is no condition", word)
	}
	switch key {
	case "annotation", "no-annotation":
		return nil, func(o *v1alpha1.BareMetalHost) bool {
			if o == nil {
				return false
			}
			_, there := o.Annotations[value]
			return there == (key == "annotation")
		}, nil
	}
	h, err := valueCondition(key, value)
	return h, nil, err
}

func plainConditions() map[string]ofHost {
	return map[string]ofHost{
		"on":          func(h lifecycle.Host) bool { return h.Power.On != nil && *h.Power.On },
		"off":         func(h lifecycle.Host) bool { return h.Power.On != nil && !*h.Power.On },
		"idle":        func(h lifecycle.Host) bool { op, _ := h.Op(); return op == nil },
		"settled":     settled,
		"detached":    func(h lifecycle.Host) bool { return h.Registration.Detached },
		"maintained":  func(h lifecycle.Host) bool { return h.Power.Maintenance != "" },
		"astray":      func(h lifecycle.Host) bool { return h.Power.Astray != "" },
		"undisturbed": func(h lifecycle.Host) bool { return len(lifecycle.Behind(h)) == 0 },
		"lost":        func(h lifecycle.Host) bool { return h.Registration.Lost },
		"adopted":     func(h lifecycle.Host) bool { return h.Registration.Adopted == h.Registration.Node },
		"wished":      func(h lifecycle.Host) bool { return h.Intent.Firmware != nil },
		"in-use": func(h lifecycle.Host) bool {
			return h.Intent.Firmware != nil && (h.Intent.Firmware.SettingsInUse || h.Intent.Firmware.UpdatesInUse)
		},
	}
}

// settled reports whether nothing more is to be expected of the host, as long as
// nobody wants anything else of it.
func settled(h lifecycle.Host) bool {
	stage := lifecycle.Stage(h)
	op, _ := h.Op()
	switch {
	case h.Intent.Paused || h.Registration.Detached || h.Registration.Removed || stage == v1alpha1.StateUnmanaged:
		return op == nil
	case op != nil || lifecycle.Problem(h) != nil || !lifecycle.AtRest(stage) || lifecycle.Apart(h) || !lifecycle.Reachable(h):
		return false
	case stage == v1alpha1.StateAvailable && (lifecycle.WantsImage(h) || lifecycle.WantsInspection(h) || lifecycle.Unsettled(h) || h.Intent.Spec.ExternallyProvisioned):
		return false
	case lifecycle.Unwanted(h) && stage == v1alpha1.StateProvisioned:
		return false
	case stage == v1alpha1.StateExternallyProvisioned && !h.Intent.Spec.ExternallyProvisioned:
		return false
	}
	wantsOn := h.Intent.Spec.Online && !lifecycle.WantsOff(h)
	return h.Power.On != nil && (*h.Power.On == wantsOn || h.Intent.Spec.DisablePowerOff)
}

func textCondition(key, text string) (ofHost, ofObject, error) {
	switch key {
	case "message":
		return func(h lifecycle.Host) bool { return strings.Contains(lifecycle.Status(h).ErrorMessage, text) }, nil, nil
	case "progress":
		return func(h lifecycle.Host) bool {
			for _, c := range lifecycle.Status(h).Conditions {
				if c.Type == v1alpha1.ProgressingCondition {
					return strings.Contains(c.Message, text)
				}
			}
			return false
		}, nil, nil
	default:
		return nil, nil, fmt.Errorf("%q is no text of a host", key)
	}
}

func valueCondition(key, value string) (ofHost, error) {
	if status, reason, ok := strings.Cut(value, "/"); ok && (status == "True" || status == "False" || status == "Unknown") {
		return func(h lifecycle.Host) bool { return hasCondition(h, key, status, reason) }, nil
	}
	switch key {
	case "state":
		return func(h lifecycle.Host) bool { return string(lifecycle.Stage(h)) == value }, nil
	case "opstatus":
		return func(h lifecycle.Host) bool { return string(lifecycle.OperationalStatus(h)) == value }, nil
	case "error":
		return func(h lifecycle.Host) bool { return string(lifecycle.Status(h).ErrorType) == value }, nil
	case "op":
		return func(h lifecycle.Host) bool {
			op, _ := h.Op()
			return op != nil && string(op.Kind) == value && op.Answered
		}, nil
	case "fact":
		section, fact, _ := strings.Cut(value, ".")
		return func(h lifecycle.Host) bool { return h.Newest(event.Section(section)).Fact == fact }, nil
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		return nil, fmt.Errorf("%s=%s is no condition", key, value)
	}
	switch key {
	case "count":
		return func(h lifecycle.Host) bool { return lifecycle.Status(h).ErrorCount == n }, nil
	case "attempts":
		return func(h lifecycle.Host) bool { return h.Provisioning.Attempts == n }, nil
	default:
		return nil, fmt.Errorf("%s=%s is no condition", key, value)
	}
}

func hasCondition(h lifecycle.Host, kind, status, reason string) bool {
	for _, c := range lifecycle.Status(h).Conditions {
		if c.Type == kind {
			return c.Status == metav1.ConditionStatus(status) && c.Reason == reason
		}
	}
	return false
}
