package hostwish

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/kube"
)

// requestTime bounds a request to the API.
const requestTime = 15 * time.Second

// fields are those of an object that change, as a merge patch has them.
type fields = map[string]any

// moving: clusterctl has moved it to another cluster and is about to delete it here.
func moving(o client.Object) bool {
	_, moving := o.GetAnnotations()[v1alpha1.DeleteForMoveAnnotation]
	return moving
}

// hold keeps an object until unhold, and has it go with its host, if one is given.
func (w *Wishes) hold(ctx context.Context, o client.Object, host *v1alpha1.BareMetalHost, finalizer string) (client.Object, error) {
	finalizers, owners := o.GetFinalizers(), o.GetOwnerReferences()
	owned := host == nil || slices.ContainsFunc(owners, func(r metav1.OwnerReference) bool { return r.UID == host.UID })
	if owned && slices.Contains(finalizers, finalizer) {
		return o, nil
	}
	change := fields{}
	if !slices.Contains(finalizers, finalizer) {
		change["finalizers"] = append(slices.Clone(finalizers), finalizer)
	}
	if !owned {
		owner := metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "BareMetalHost", Name: host.Name, UID: host.UID}
		former := func(r metav1.OwnerReference) bool { return r.Kind == owner.Kind && r.Name == owner.Name }
		change["ownerReferences"] = append(slices.DeleteFunc(slices.Clone(owners), former), owner)
	}
	return w.patch(ctx, o, "keep", fields{"metadata": change}, func(ctx context.Context, into client.Object, p client.Patch) error { return w.api.Patch(ctx, into, p) })
}

// unhold lets an object go.
func (w *Wishes) unhold(ctx context.Context, o client.Object, finalizer string) error {
	if !slices.Contains(o.GetFinalizers(), finalizer) {
		return nil
	}
	rest := slices.DeleteFunc(slices.Clone(o.GetFinalizers()), func(f string) bool { return f == finalizer })
	_, err := w.patch(ctx, o, "let go of", fields{"metadata": fields{"finalizers": rest}},
		func(ctx context.Context, into client.Object, p client.Patch) error { return w.api.Patch(ctx, into, p) })
	return err
}

// write changes an object's status.
func (w *Wishes) write(ctx context.Context, o client.Object, status any) error {
	_, err := w.patch(ctx, o, "write the status of", fields{"status": status},
		func(ctx context.Context, into client.Object, p client.Patch) error {
			return w.api.Status().Patch(ctx, into, p)
		})
	return err
}

// patch changes an object unless somebody has changed it meanwhile: kube.ErrConflict
// says that it is to be looked at again. One that is gone needs no change.
func (w *Wishes) patch(ctx context.Context, o client.Object, doing string, change fields, do func(context.Context, client.Object, client.Patch) error) (client.Object, error) {
	meta, _ := change["metadata"].(fields)
	if meta == nil {
		meta = fields{}
		change["metadata"] = meta
	}
	meta["resourceVersion"], meta["uid"] = o.GetResourceVersion(), o.GetUID()
	what := fmt.Sprintf("%s %T %s/%s", doing, o, o.GetNamespace(), o.GetName())
	text, err := json.Marshal(change)
	if err != nil {
		return o, fmt.Errorf("%s: %w", what, err)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	now := o.DeepCopyObject().(client.Object)
	err = do(ctx, now, client.RawPatch(types.MergePatchType, text))
	switch {
	case apierrors.IsNotFound(err):
		return o, nil
	case apierrors.IsConflict(err):
		return o, fmt.Errorf("%s: %w", what, kube.ErrConflict)
	case err != nil:
		return o, fmt.Errorf("%s: %w", what, err)
	}
	w.wrote(now)
	return now, nil
}

// wrote takes an object from the answer to a write.
func (w *Wishes) wrote(o client.Object) {
	switch o := o.(type) {
	case *v1alpha1.DataImage:
		w.images.Wrote(o)
	case *subscription:
		w.subscriptions.Wrote(o)
	}
}
