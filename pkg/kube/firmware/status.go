package firmware

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/kube"
)

// notReadReason is what is not known since it could not be read.
const notReadReason = "NotRead"

// subject is what the conditions of an object are about.
type subject struct {
	generation int64
	now        time.Time
	// remarks are for people: what could not be read.
	remarks string
	// when says for people when what differs is changed, "" for soon.
	when string
}

// mark sets a condition. Its generation is always that of the object as it is.
func (s subject) mark(list *[]metav1.Condition, kind string, is metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(list, metav1.Condition{
		Type: kind, Status: is, Reason: reason, Message: message,
		ObservedGeneration: s.generation, LastTransitionTime: metav1.NewTime(s.now.UTC().Truncate(time.Second)),
	})
}

// truth is a truth as conditions have it.
func truth(is bool) metav1.ConditionStatus {
	if is {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

// taken is a list of conditions without our own word that nobody carries this out.
func taken(list []metav1.Condition) []metav1.Condition {
	return slices.DeleteFunc(slices.Clone(list), func(c metav1.Condition) bool { return c.Type == v1alpha1.SupportedCondition })
}

// joined are the texts that are not empty, as sentences.
func joined(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), ". ")
}

// remarksOn says what could not be read of a host's firmware.
func remarksOn(f event.Firmware, read event.FirmwareRead) string {
	var odd, problem string
	if len(f.Odd) > 0 {
		odd = "Left out, since no value or no proper name can be read: " + names(slices.Clone(f.Odd))
	}
	switch {
	case read.Problem != "" && read.Digest == "":
		problem = "The firmware is not known; it is tried again: " + read.Problem
	case read.Problem != "":
		problem = "The firmware could not be read, so this is what was read before; it is tried again: " + read.Problem
	}
	return joined(odd, problem)
}

// settingsStatus is the status of the settings of a machine.
func settingsStatus(o *v1alpha1.HostFirmwareSettings, f event.Firmware, v verdict, s subject) v1alpha1.HostFirmwareSettingsStatus {
	status := *o.Status.DeepCopy()
	status.FirmwareSchema = &v1alpha1.SchemaReference{Namespace: o.Namespace, Name: schemaName(f.Schema)}
	status.Settings = v1alpha1.SettingsMap{}
	for name, value := range f.Settings {
		if !strings.Contains(name, v1alpha1.AttributePassword) {
			status.Settings[name] = value
		}
	}
	status.Conditions = onSettings().judged(status.Conditions, v, s)
	return status
}

// componentsStatus is the status of the components of a machine.
func componentsStatus(o *v1alpha1.HostFirmwareComponents, f event.Firmware, v verdict, installed []v1alpha1.FirmwareUpdate, s subject) v1alpha1.HostFirmwareComponentsStatus {
	status := *o.Status.DeepCopy()
	status.Components, status.Updates = slices.Clone(f.Components), installed
	if len(v.differ) == 0 {
		status.Updates = withoutLogins(o.Spec.Updates)
	}
	status.Conditions = onComponents().judged(status.Conditions, v, s)
	return status
}

// differing names what is not as it is wanted, and says what comes of that.
func differing(what string, v verdict, when string) string {
	if len(v.differ) == 0 {
		return ""
	}
	if len(v.faults) > 0 {
		when = "Nothing is changed, since not all of it can be"
	}
	return joined(fmt.Sprintf("%s that are not as they are wanted: %s", what, names(slices.Clone(v.differ))), when)
}

// When what differs is changed, where that is not soon.
const (
	whenRebooted = "They are changed when the host is next rebooted or switched on"
	whenPrepared = "The host is in use: they are changed when it is next prepared, or at its next reboot if its HostUpdatePolicy says onReboot"
	notHeeded    = "They were handed over to the machine, which has not heeded them; take them out of the specification and write them again to have that tried once more"
)

// digestKey stands in for all settings of an object that is kept in memory: of
// thousands of machines with hundreds of settings each nobody reads them there.
const digestKey = ""

// shorten drops what nobody reads from settings that are kept.
func shorten(o *v1alpha1.HostFirmwareSettings) *v1alpha1.HostFirmwareSettings {
	o.ManagedFields = nil
	o.Status.Settings = digested(o.Status.Settings)
	return o
}

func digested(m v1alpha1.SettingsMap) v1alpha1.SettingsMap {
	if _, short := m[digestKey]; short || m == nil {
		return m
	}
	text, err := json.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("encode settings: %v", err)) // a map of texts
	}
	return v1alpha1.SettingsMap{digestKey: kube.Digest(string(text))}
}
