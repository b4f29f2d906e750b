package firmware

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// requestTime bounds a request to the API.
const requestTime = 15 * time.Second

func equal(a, b any) bool { return apiequality.Semantic.DeepEqual(a, b) }

// stamp is the time as a status has it.
func (c *Controller) stamp() *metav1.Time {
	return &metav1.Time{Time: c.now().UTC().Truncate(time.Second)}
}

// moving reports whether an object lives in another cluster from now on.
func moving(o client.Object) bool {
	_, moving := o.GetAnnotations()[v1alpha1.DeleteForMoveAnnotation]
	return moving || o.GetDeletionTimestamp() != nil
}

// newMeta names an object of a host, which goes with the host.
func newMeta(o *v1alpha1.BareMetalHost) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, OwnerReferences: []metav1.OwnerReference{ownedBy(o)}}
}

func ownedBy(o *v1alpha1.BareMetalHost) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "BareMetalHost", Name: o.Name, UID: o.UID}
}

// unseen is how long an object that was made may not have been seen yet.
const unseen = 10 * time.Second

// create makes an object that was not seen, unless it was made just now: a thousand
// equal machines that come at once have one schema made.
func (c *Controller) create(ctx context.Context, o client.Object) error {
	name, now := nameOf(o), c.now()
	c.mu.Lock()
	recent := now.Sub(c.made[name]) < unseen
	if !recent {
		c.made[name] = now
		if len(c.made)%512 == 0 {
			maps.DeleteFunc(c.made, func(_ string, at time.Time) bool { return now.Sub(at) > unseen })
		}
	}
	c.mu.Unlock()
	if recent {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	if err := c.client.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
		c.mu.Lock()
		delete(c.made, name)
		c.mu.Unlock()
		return fmt.Errorf("make %T %s/%s: %w", o, o.GetNamespace(), o.GetName(), err)
	}
	return nil
}

// owned is an object that goes with its host, also if somebody else made it.
func owned[T client.Object](ctx context.Context, c *Controller, o T, host *v1alpha1.BareMetalHost) (T, error) {
	if slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == host.UID }) || moving(o) {
		return o, nil
	}
	owners := slices.DeleteFunc(slices.Clone(o.GetOwnerReferences()), func(r metav1.OwnerReference) bool {
		return r.Kind == "BareMetalHost" && r.Name == host.Name // the host as it was before it was moved here
	})
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": o.GetResourceVersion(), "ownerReferences": append(owners, ownedBy(host)),
	}})
	if err != nil {
		return o, fmt.Errorf("encode the owners of %T: %w", o, err)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	now := o.DeepCopyObject().(T)
	if err := c.client.Patch(ctx, now, client.RawPatch(types.MergePatchType, body)); err != nil {
		return o, fmt.Errorf("have %T %s/%s go with its host: %w", o, o.GetNamespace(), o.GetName(), err)
	}
	c.wrote(now)
	return now, nil
}

// wrote remembers a write of ours: its return by the watch is no news.
func (c *Controller) wrote(o client.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.own[nameOf(o)] = o.GetResourceVersion()
}

// isOwn reports whether an object is as we wrote it last.
func (c *Controller) isOwn(o client.Object) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	own := c.own[nameOf(o)] == o.GetResourceVersion()
	if own || o.GetDeletionTimestamp() != nil {
		delete(c.own, nameOf(o))
	}
	return own
}

func nameOf(o client.Object) string { return fmt.Sprintf("%T %s", o, client.ObjectKeyFromObject(o)) }

// writeStatus replaces an object's status, unless somebody has written the object
// meanwhile. The object is then what the API answered.
func (c *Controller) writeStatus(ctx context.Context, o client.Object) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	if err := c.client.Status().Update(ctx, o); err != nil {
		return fmt.Errorf("write the status of %T %s/%s: %w", o, o.GetNamespace(), o.GetName(), err)
	}
	c.wrote(o)
	return nil
}

// ensureSchema makes the schema of a host's settings, unless it is there.
func (l *looker) ensureSchema(ctx context.Context, s sight) error {
	schema := schemaOf(s.host, s.known)
	if o, there := l.schemas.Get(client.ObjectKeyFromObject(schema)); there && o.DeletionTimestamp == nil {
		return nil
	}
	return l.create(ctx, schema)
}

const (
	// sweepEvery is how often schemas are looked for that nobody refers to.
	sweepEvery = 10 * time.Minute
	// unreferred is how long a schema may have been there without a reference: it is
	// made before what refers to it.
	unreferred = 10 * time.Minute
)

// patchStatus changes some fields of an object's status, as writeStatus does.
func (c *Controller) patchStatus(ctx context.Context, o client.Object, fields map[string]any) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": o.GetResourceVersion()}, "status": fields})
	if err != nil {
		return fmt.Errorf("encode the status of %T: %w", o, err)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	if err := c.client.Status().Patch(ctx, o, client.RawPatch(types.MergePatchType, body)); err != nil {
		return fmt.Errorf("write the status of %T %s/%s: %w", o, o.GetNamespace(), o.GetName(), err)
	}
	c.wrote(o)
	return nil
}

// sweep removes schemas that no settings refer to, until ctx ends. They have no
// owners: a thousand equal machines would make a list of a thousand, to be written
// again with each of them.
func (c *Controller) sweep(ctx context.Context, all objects) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		for _, schema := range leftOver(all.schemas.All(), all.settings.All(), c.now()) {
			c.remove(ctx, schema)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// leftOver are the schemas of ours that no settings refer to.
func leftOver(schemas []*v1alpha1.FirmwareSchema, settings []*v1alpha1.HostFirmwareSettings, now time.Time) []*v1alpha1.FirmwareSchema {
	referred := map[types.NamespacedName]bool{}
	for _, s := range settings {
		if r := s.Status.FirmwareSchema; r != nil {
			referred[types.NamespacedName{Namespace: r.Namespace, Name: r.Name}] = true
		}
	}
	var list []*v1alpha1.FirmwareSchema
	for _, s := range schemas {
		ours := s.Labels[managedByLabel] == managedBy && len(s.OwnerReferences) == 0 && !moving(s)
		if ours && !referred[client.ObjectKeyFromObject(s)] && now.Sub(s.CreationTimestamp.Time) > unreferred {
			list = append(list, s)
		}
	}
	return list
}

func (c *Controller) remove(ctx context.Context, o *v1alpha1.FirmwareSchema) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	err := c.client.Delete(ctx, o, client.Preconditions{UID: &o.UID, ResourceVersion: &o.ResourceVersion})
	if client.IgnoreNotFound(err) != nil && ctx.Err() == nil {
		c.log.Debug("a schema that nobody refers to could not be removed", keyObject, o.Namespace+"/"+o.Name, keyError, err)
	}
}

// The keys of log lines.
const (
	keyObject = "object"
	keyError  = "error"
)
