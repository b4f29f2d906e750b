package stories_test

import (
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// firmware writes what a host's user wants of its firmware:
//
//	settings NAME=VALUE…      HostFirmwareSettings with these, and no others
//	updates COMPONENT=URL…    likewise HostFirmwareComponents
//	policy FIELD=VALUE…       HostUpdatePolicy
func (r *script) firmware(kind string, args []string) error {
	r.Helper()
	if m, ok := r.site.user.(*memory); ok {
		return m.wishFirmware(kind, args)
	}
	p, ok := r.site.user.(*play)
	if !ok {
		return fmt.Errorf("%T has no such objects", r.site.user)
	}
	named := metav1.ObjectMeta{Name: p.name}
	switch kind {
	case "settings":
		o := &v1alpha1.HostFirmwareSettings{ObjectMeta: named}
		p.user.Edit(o, func() {
			o.Spec.Settings = v1alpha1.DesiredSettingsMap{}
			for _, a := range args {
				name, value, _ := strings.Cut(a, "=")
				o.Spec.Settings[name] = intOrText(value)
			}
		})
	case "updates":
		o := &v1alpha1.HostFirmwareComponents{ObjectMeta: named}
		p.user.Edit(o, func() {
			o.Spec.Updates = []v1alpha1.FirmwareUpdate{}
			for _, a := range args {
				component, url, _ := strings.Cut(a, "=")
				o.Spec.Updates = append(o.Spec.Updates, v1alpha1.FirmwareUpdate{Component: component, URL: url})
			}
		})
	default:
		o := &v1alpha1.HostUpdatePolicy{ObjectMeta: named}
		spec := map[string]string{}
		for _, a := range args {
			field, value, _ := strings.Cut(a, "=")
			spec[field] = value
		}
		text, err := json.Marshal(spec)
		if err != nil {
			return err
		}
		p.user.Edit(o, func() { err = json.Unmarshal(text, &o.Spec) })
		return err
	}
	return nil
}

func intOrText(value string) intstr.IntOrString {
	var v intstr.IntOrString
	if json.Unmarshal([]byte(value), &v) != nil {
		v = intstr.FromString(value)
	}
	return v
}

// firmware are the objects as they are now.
func (p *play) firmware() papers {
	p.t.Helper()
	s := papers{settings: &v1alpha1.HostFirmwareSettings{}, components: &v1alpha1.HostFirmwareComponents{}}
	s.settings.Name, s.components.Name = p.name, p.name
	p.user.Read(s.settings)
	p.user.Read(s.components)
	return s
}

// firmwareCondition reads a condition about those objects; ok is false for others.
func firmwareCondition(word string) (f func(papers) bool, ok bool) {
	if text, ok := strings.CutPrefix(word, "settings~"); ok {
		return func(s papers) bool { return says(s.settings.Status.Conditions, text) }, true
	}
	if text, ok := strings.CutPrefix(word, "updates~"); ok {
		return func(s papers) bool { return says(s.components.Status.Conditions, text) }, true
	}
	if rest, ok := strings.CutPrefix(word, "settings:"); ok {
		name, value, _ := strings.Cut(rest, "=")
		return func(s papers) bool {
			return s.settings.Status.Settings[name] == value || isSo(s.settings.Status.Conditions, name, value, s.settings.Generation)
		}, true
	}
	if rest, ok := strings.CutPrefix(word, "updates:"); ok {
		name, value, _ := strings.Cut(rest, "=")
		return func(s papers) bool {
			for _, c := range s.components.Status.Components {
				if c.Component == name {
					return c.CurrentVersion == value
				}
			}
			return isSo(s.components.Status.Conditions, name, value, s.components.Generation)
		}, true
	}
	return nil, false
}

func says(conditions []metav1.Condition, text string) bool {
	for _, c := range conditions {
		if strings.Contains(c.Message, text) {
			return true
		}
	}
	return false
}

// isSo: a condition is so, and about the object as it is: True, or False/Reason.
func isSo(conditions []metav1.Condition, kind, value string, generation int64) bool {
	for _, c := range conditions {
		if c.Type == kind && c.ObservedGeneration == generation {
			return value == string(c.Status) || value == string(c.Status)+"/"+c.Reason
		}
	}
	return false
}
