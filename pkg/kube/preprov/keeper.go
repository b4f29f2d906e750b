package preprov

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// keeper keeps one image for each host.
type keeper struct {
	client client.Client
	image  func(types.NamespacedName) (*v1alpha1.PreprovisioningImage, bool)
	// host is the host of that name, there the one with that uid; nil if there is
	// none.
	host  func(types.NamespacedName) *v1alpha1.BareMetalHost
	there func(uid string) *v1alpha1.BareMetalHost
}

// look sees to the image of the host of that name.
func (k *keeper) look(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	o := k.host(key)
	image, exists := k.image(key)
	switch {
	case exists && held(image) && k.unneeded(o, image):
		return 0, k.release(ctx, image)
	case o == nil || frozen(o):
		return 0, nil
	case !exists && needed(o):
		return 0, k.make(ctx, o)
	case !exists || image.DeletionTimestamp != nil || others(o, image) != "":
		return 0, nil
	default:
		return 0, k.correct(ctx, o, image)
	}
}

// unneeded reports whether nobody boots the image any more: its host is gone, or
// let go of, or somebody wants the image itself gone, and the host does not boot it
// just now. What a host that is leaving has booted it may have to boot once more.
func (k *keeper) unneeded(o *v1alpha1.BareMetalHost, image *v1alpha1.PreprovisioningImage) bool {
	if owner := metav1.GetControllerOf(image); owner != nil {
		o = k.there(string(owner.UID))
	}
	switch {
	case o == nil:
		return true
	case o.DeletionTimestamp != nil:
		return !slices.Contains(o.Finalizers, v1alpha1.BareMetalHostFinalizer)
	case image.DeletionTimestamp == nil || frozen(o):
		return false
	default:
		return image.Status.ImageUrl == "" || rests(o)
	}
}

// frozen reports whether nothing may be done for the host.
func frozen(o *v1alpha1.BareMetalHost) bool {
	_, paused := o.Annotations[v1alpha1.PausedAnnotation]
	_, moving := o.Annotations[v1alpha1.DeleteForMoveAnnotation]
	return paused || moving
}

// needed reports whether the host may come to boot an image.
func needed(o *v1alpha1.BareMetalHost) bool {
	_, detached := o.Annotations[v1alpha1.DetachedAnnotation]
	if detached || o.Spec.BMC.Address == "" {
		return false
	}
	return o.DeletionTimestamp == nil || o.Status.Provisioning.State == v1alpha1.StateDeprovisioning
}

// rests reports whether the host boots no image now.
func rests(o *v1alpha1.BareMetalHost) bool {
	switch o.Status.Provisioning.State {
	case v1alpha1.StateInspecting, v1alpha1.StatePreparing, v1alpha1.StateProvisioning, v1alpha1.StateDeprovisioning:
		return false
	default:
		return o.Status.OperationalStatus != v1alpha1.OperationalStatusServicing
	}
}

// make makes the image of a host that has none. A host whose BMC address cannot be
// read has to wait; so has one in a namespace that goes.
func (k *keeper) make(ctx context.Context, o *v1alpha1.BareMetalHost) error {
	image := &v1alpha1.PreprovisioningImage{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}}
	if !aim(o, image) {
		return nil
	}
	err := k.client.Create(ctx, image)
	if err == nil || apierrors.IsAlreadyExists(err) || apierrors.HasStatusCause(err, "NamespaceTerminating") {
		return nil
	}
	return fmt.Errorf("make PreprovisioningImage %s/%s: %w", o.Namespace, o.Name, err)
}

// aim makes an image what the host needs; ok is false if that cannot be told.
func aim(o *v1alpha1.BareMetalHost, image *v1alpha1.PreprovisioningImage) (ok bool) {
	spec, err := specOf(o)
	if err != nil {
		return false
	}
	image.Spec, image.Labels = spec, maps.Clone(o.Labels)
	if !held(image) {
		image.Finalizers = append(image.Finalizers, v1alpha1.HostPreprovisioningImageFinalizer)
	}
	if metav1.GetControllerOf(image) == nil {
		image.OwnerReferences = append(image.OwnerReferences, *metav1.NewControllerRef(o, v1alpha1.GroupVersion.WithKind("BareMetalHost")))
	}
	return true
}

// correct brings an image to what its host needs.
func (k *keeper) correct(ctx context.Context, o *v1alpha1.BareMetalHost, image *v1alpha1.PreprovisioningImage) error {
	next := image.DeepCopy()
	if !aim(o, next) {
		return nil
	}
	if !equality.Semantic.DeepEqual(next, image) {
		return said("correct", image, k.client.Update(ctx, next))
	}
	return k.unsay(ctx, image)
}

// unsay takes the notice away that nobody boots such images.
func (k *keeper) unsay(ctx context.Context, image *v1alpha1.PreprovisioningImage) error {
	status := *image.Status.DeepCopy()
	if !meta.RemoveStatusCondition(&status.Conditions, v1alpha1.SupportedCondition) {
		return nil
	}
	return writeStatus(ctx, k.client, image, status)
}

// release lets go of an image.
func (k *keeper) release(ctx context.Context, image *v1alpha1.PreprovisioningImage) error {
	return said("let go of", image, setFinalizers(ctx, k.client, image, without(image.Finalizers, v1alpha1.HostPreprovisioningImageFinalizer)))
}

func without(list []string, one string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(f string) bool { return f == one })
}

// setFinalizers changes who holds an image, unless somebody has changed it meanwhile.
func setFinalizers(ctx context.Context, c client.Client, image *v1alpha1.PreprovisioningImage, list []string) error {
	return patch(ctx, image, map[string]any{"metadata": map[string]any{"resourceVersion": image.ResourceVersion, "uid": image.UID, "finalizers": list}},
		func(ctx context.Context, o client.Object, p client.Patch) error { return c.Patch(ctx, o, p) })
}

// writeStatus changes the status of an image, unless somebody has changed it
// meanwhile.
func writeStatus(ctx context.Context, c client.Client, image *v1alpha1.PreprovisioningImage, status v1alpha1.PreprovisioningImageStatus) error {
	err := patch(ctx, image, map[string]any{"metadata": map[string]any{"resourceVersion": image.ResourceVersion}, "status": whole(status)},
		func(ctx context.Context, o client.Object, p client.Patch) error { return c.Status().Patch(ctx, o, p) })
	return said("write the status of", image, err)
}

// whole are all fields of a status as a merge patch has them: what is empty goes.
func whole(s v1alpha1.PreprovisioningImageStatus) map[string]any {
	text := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	return map[string]any{
		"imageUrl": text(s.ImageUrl), "kernelUrl": text(s.KernelUrl), "extraKernelParams": text(s.ExtraKernelParams), "format": text(string(s.Format)),
		"networkData":  map[string]any{"name": text(s.NetworkData.Name), "version": text(s.NetworkData.Version)},
		"architecture": text(s.Architecture), "conditions": s.Conditions,
	}
}

func patch(ctx context.Context, image *v1alpha1.PreprovisioningImage, body map[string]any, do func(context.Context, client.Object, client.Patch) error) error {
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode a change: %w", err)
	}
	now := &v1alpha1.PreprovisioningImage{ObjectMeta: metav1.ObjectMeta{Namespace: image.Namespace, Name: image.Name}}
	return do(ctx, now, client.RawPatch(types.MergePatchType, text))
}

// said is what an error of a write says; that the image is gone is none.
func said(doing string, image *v1alpha1.PreprovisioningImage, err error) error {
	if client.IgnoreNotFound(err) == nil {
		return nil
	}
	return fmt.Errorf("%s PreprovisioningImage %s/%s: %w", doing, image.Namespace, image.Name, err)
}
