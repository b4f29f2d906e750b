package projector

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/kube"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// settled reports whether the host is where it may stay for long: then its
// object carries a copy of its status, from which it can be restored. An
// unmanaged host has nothing that its object does not say.
func settled(h lifecycle.Host) bool {
	switch lifecycle.Stage(h) {
	case v1alpha1.StateAvailable:
		return !lifecycle.WantsImage(h) && !lifecycle.WantsInspection(h) && !lifecycle.Leaving(h)
	case v1alpha1.StateProvisioned:
		return !lifecycle.Unwanted(h)
	case v1alpha1.StateExternallyProvisioned:
		return true
	default:
		return false
	}
}

// copied reports whether the object's status annotation is our own, of this
// host and this log.
func copied(o *v1alpha1.BareMetalHost, h lifecycle.Host) bool {
	r, ok := annotated(o)
	return ok && r.UID == h.UID && r.Epoch == h.Epoch
}

// served are the annotations that asked for something that is done, or has
// begun, and the traces that they leave: by those the same annotation is
// known to be a new request should it be set again.
func served(o *v1alpha1.BareMetalHost, h lifecycle.Host) kube.Edit {
	e := kube.Edit{Set: map[string]string{}}
	for _, r := range h.Intent.Reboots {
		_, there := o.Annotations[v1alpha1.RebootAnnotationPrefix]
		if there && lifecycle.ServedReboot(h, r) && o.Annotations[v1alpha1.ServedRebootAnnotation] != r.ID {
			e.Drop = append(e.Drop, v1alpha1.RebootAnnotationPrefix)
			e.Set[v1alpha1.ServedRebootAnnotation] = r.ID
		}
	}
	id := h.Intent.InspectRequest
	value, there := o.Annotations[v1alpha1.InspectAnnotationPrefix]
	asked := there && value != v1alpha1.InspectAnnotationValueDisabled && id != ""
	if asked && servedInspection(h, id) && o.Annotations[v1alpha1.ServedInspectAnnotation] != id {
		e.Drop = append(e.Drop, v1alpha1.InspectAnnotationPrefix)
		e.Set[v1alpha1.ServedInspectAnnotation] = id
	}
	return e
}

// servedInspection reports whether an inspection has begun since it was asked for.
func servedInspection(h lifecycle.Host, id string) bool {
	i, asked := h.Inspection, revOfRequest(id)
	if i.Op != nil {
		return startOf(*i.Op) > asked
	}
	tried := i.Again || i.Problem != nil || i.Last != nil
	return i.Request == id || (tried && h.Newest(event.SectionInspection).Rev > asked)
}

// startOf is the revision that began an operation.
func startOf(op event.Op) uint64 {
	return revOfRequest("r" + op.ID[strings.LastIndexByte(op.ID, '-')+1:])
}

// parseSupplied reads hardware details that a user gave in an annotation. A
// field that does not exist is an error: it would be lost without a word.
func parseSupplied(text string) (*v1alpha1.HardwareDetails, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	var hw v1alpha1.HardwareDetails
	if err := d.Decode(&hw); err != nil {
		return nil, fmt.Errorf("the annotation %s cannot be read: %w; correct it, or remove it", v1alpha1.HardwareDetailsAnnotation, err)
	}
	return &hw, nil
}

// statusText is the text of the status annotation.
func statusText(s v1alpha1.BareMetalHostStatus) string { return encode(s) }

func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err)) // our own types
	}
	return string(text)
}
