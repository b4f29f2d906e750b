package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// Written is the answer to a write of a host's status.
type Written struct {
	// Host is the host after the write.
	Host *v1alpha1.BareMetalHost
	// Dropped are fields of the status that the API did not keep, since its
	// CRD is older than this program: "status.hardware".
	Dropped []string
}

// WriteStatus changes the status of a host to what is given, on the condition
// that nobody has changed the host since it was seen as o: else ErrConflict.
// What is equal is not sent. A status that is equal in whole is not written.
func (c *Cluster) WriteStatus(ctx context.Context, o *v1alpha1.BareMetalHost, status v1alpha1.BareMetalHostStatus) (Written, error) {
	patch, err := statusPatch(o.Status, status)
	if err != nil {
		return Written{}, err
	}
	if patch == nil {
		return Written{Host: o}, nil
	}
	body := mustJSON(map[string]any{"metadata": map[string]string{"resourceVersion": o.ResourceVersion}, "status": patch})
	now, err := c.patch(ctx, writeStatus, "write status of host", o, body, func(ctx context.Context, into *v1alpha1.BareMetalHost) error {
		return c.client.Status().Patch(ctx, into, client.RawPatch(types.MergePatchType, body))
	})
	if err != nil {
		return Written{}, err
	}
	dropped := notKept(status, now.Status)
	for _, field := range dropped {
		c.metrics.unkept.WithLabelValues(field).Inc()
	}
	return Written{Host: now, Dropped: dropped}, nil
}

func (c *Cluster) patch(ctx context.Context, kind, doing string, o *v1alpha1.BareMetalHost, body []byte, do func(context.Context, *v1alpha1.BareMetalHost) error) (*v1alpha1.BareMetalHost, error) {
	now := &v1alpha1.BareMetalHost{}
	now.Namespace, now.Name = o.Namespace, o.Name
	if do == nil {
		do = func(ctx context.Context, into *v1alpha1.BareMetalHost) error {
			return c.client.Patch(ctx, into, client.RawPatch(types.MergePatchType, body))
		}
	}
	if err := c.write(ctx, kind, fmt.Sprintf("%s %s/%s", doing, o.Namespace, o.Name), func(ctx context.Context) error { return do(ctx, now) }); err != nil {
		return nil, err
	}
	if now.UID != o.UID {
		return nil, fmt.Errorf("host %s/%s is another one now: %w", o.Namespace, o.Name, ErrGone)
	}
	c.Hosts.wrote(now)
	return now, nil
}

// statusPatch is the merge patch from one status to another, nil if they are
// equal. Hardware, which is most of a status and hardly ever changes, is left
// out of the comparison by text.
func statusPatch(from, to v1alpha1.BareMetalHostStatus) (map[string]json.RawMessage, error) {
	same := apiequality.Semantic.DeepEqual(from.HardwareDetails, to.HardwareDetails)
	hardware := [2]*v1alpha1.HardwareDetails{from.HardwareDetails, to.HardwareDetails}
	from.HardwareDetails, to.HardwareDetails = nil, nil
	patch, err := diff(from, to)
	if err != nil {
		return nil, err
	}
	if !same {
		part, err := diff(withHardware(hardware[0]), withHardware(hardware[1]))
		if err != nil {
			return nil, err
		}
		patch["hardware"] = part["hardware"]
	}
	if len(patch) == 0 {
		return nil, nil
	}
	return patch, nil
}

func withHardware(hw *v1alpha1.HardwareDetails) any {
	return struct {
		Hardware *v1alpha1.HardwareDetails `json:"hardware,omitempty"`
	}{hw}
}

func diff(from, to any) (map[string]json.RawMessage, error) {
	before := mustJSON(from)
	if reflect.ValueOf(from).IsZero() {
		before = []byte("{}") // not there at all, so what is required has to be sent
	}
	patch, err := jsonpatch.CreateMergePatch(before, mustJSON(to))
	if err != nil {
		return nil, fmt.Errorf("compare: %w", err)
	}
	fields := map[string]json.RawMessage{}
	return fields, json.Unmarshal(patch, &fields)
}

// notKept are the fields at the top of a status, and those of its
// provisioning, that were sent and are not there.
func notKept(sent, kept v1alpha1.BareMetalHostStatus) []string {
	if apiequality.Semantic.DeepEqual(sent, kept) {
		return nil
	}
	var fields []string
	want, got := asMap(sent), asMap(kept)
	for name := range want {
		if _, there := got[name]; !there {
			fields = append(fields, "status."+name)
		}
	}
	want, got = asMap(sent.Provisioning), asMap(kept.Provisioning)
	for name := range want {
		if _, there := got[name]; !there {
			fields = append(fields, "status.provisioning."+name)
		}
	}
	slices.Sort(fields)
	return fields
}

func asMap(v any) map[string]json.RawMessage {
	fields := map[string]json.RawMessage{}
	_ = json.Unmarshal(mustJSON(v), &fields) // what was just made
	return fields
}

// Edit is a change of our own keys of a host, and of the one field of its
// specification that we fill in.
type Edit struct {
	// Set are annotations to set.
	Set map[string]string
	// Drop are annotations to take away.
	Drop []string
	// Architecture is the value of spec.architecture, "" to leave it.
	Architecture string
}

// Empty reports whether there is nothing to change.
func (e Edit) Empty() bool { return len(e.Set) == 0 && len(e.Drop) == 0 && e.Architecture == "" }

// EditHost changes what e says and nothing else. It fails with ErrConflict if
// somebody has changed the host meanwhile: it may be paused now, or what is to
// be taken away may have been set anew.
func (c *Cluster) EditHost(ctx context.Context, o *v1alpha1.BareMetalHost, e Edit) (*v1alpha1.BareMetalHost, error) {
	annotations := map[string]any{}
	for k, v := range e.Set {
		annotations[k] = v
	}
	meta := map[string]any{"uid": o.UID, "resourceVersion": o.ResourceVersion}
	for _, k := range e.Drop {
		annotations[k] = nil
	}
	if len(annotations) > 0 {
		meta["annotations"] = annotations
	}
	body := map[string]any{"metadata": meta}
	if e.Architecture != "" {
		body["spec"] = map[string]string{"architecture": e.Architecture}
	}
	return c.patch(ctx, writeMetadata, "annotate host", o, mustJSON(body), nil)
}

// AddFinalizer keeps the host until ReleaseHost. It fails with ErrConflict if
// somebody has changed the host meanwhile.
func (c *Cluster) AddFinalizer(ctx context.Context, o *v1alpha1.BareMetalHost) (*v1alpha1.BareMetalHost, error) {
	if slices.Contains(o.Finalizers, v1alpha1.BareMetalHostFinalizer) {
		return o, nil
	}
	body := finalizers(o, append(slices.Clone(o.Finalizers), v1alpha1.BareMetalHostFinalizer))
	return c.patch(ctx, writeFinalizer, "take over host", o, body, nil)
}

// ReleaseHost takes our finalizer off a host, which lets it go if it is being
// deleted. It fails with ErrConflict if somebody has changed the host meanwhile.
func (c *Cluster) ReleaseHost(ctx context.Context, o *v1alpha1.BareMetalHost) error {
	body, has := withoutFinalizer(o, v1alpha1.BareMetalHostFinalizer)
	if !has {
		return nil
	}
	_, err := c.patch(ctx, writeFinalizer, "let go of host", o, body, nil)
	return ignoreGone(err)
}

func withoutFinalizer(o client.Object, finalizer string) (patch []byte, has bool) {
	rest := slices.DeleteFunc(slices.Clone(o.GetFinalizers()), func(f string) bool { return f == finalizer })
	return finalizers(o, rest), len(rest) != len(o.GetFinalizers())
}

func finalizers(o client.Object, list []string) []byte {
	return mustJSON(map[string]any{"metadata": map[string]any{"resourceVersion": o.GetResourceVersion(), "uid": o.GetUID(), "finalizers": list}})
}

func isExists(err error) bool { return apierrors.IsAlreadyExists(err) }

// mustJSON encodes what always can be encoded: our own types.
func mustJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err))
	}
	return text
}
