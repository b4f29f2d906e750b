package hostclaim

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/kube"
)

// requestTime bounds a request to the API.
const requestTime = 15 * time.Second

// api is the store in a cluster.
type api struct {
	client client.Client
	// wrote is told of each claim after a write.
	wrote func(*v1alpha1.HostClaim)
}

func (a api) Host(ctx context.Context, key types.NamespacedName) (*v1alpha1.BareMetalHost, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	h := &v1alpha1.BareMetalHost{}
	return h, translate("read host "+key.String(), a.client.Get(ctx, key, h))
}

func (a api) Labels(ctx context.Context, namespace string) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	n := &corev1.Namespace{}
	err := a.client.Get(ctx, client.ObjectKey{Name: namespace}, n)
	if apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("this service may not get Namespaces, which a HostDeployPolicy with hasLabels needs: %w", err)
	}
	return n.Labels, translate("read namespace "+namespace, err)
}

func (a api) Note(ctx context.Context, claim *v1alpha1.HostClaim, n note) (*v1alpha1.HostClaim, error) {
	if noteOf(claim) == n {
		return claim, nil
	}
	finalizers := slices.DeleteFunc(slices.Clone(claim.Finalizers), func(f string) bool { return f == v1alpha1.HostClaimFinalizer })
	if n.finalizer {
		finalizers = append(finalizers, v1alpha1.HostClaimFinalizer)
	}
	var chosen any
	if n.chosen.Name != "" {
		chosen = n.chosen.Namespace + "/" + n.chosen.Name
	}
	now := named(claim)
	err := a.patch(ctx, "note the host of claim", now, map[string]any{"metadata": map[string]any{
		"uid": claim.UID, "resourceVersion": claim.ResourceVersion,
		"finalizers": finalizers, "annotations": map[string]any{v1alpha1.ChosenHostAnnotation: chosen},
	}}, a.client.Patch)
	if err == nil {
		a.wrote(now)
	}
	return now, err
}

func (a api) Consume(ctx context.Context, host *v1alpha1.BareMetalHost, consumer *corev1.ObjectReference) (*v1alpha1.BareMetalHost, error) {
	now := &v1alpha1.BareMetalHost{}
	now.Namespace, now.Name = host.Namespace, host.Name
	return now, a.patch(ctx, "write the consumer of host", now, map[string]any{
		"metadata": map[string]any{"uid": host.UID, "resourceVersion": host.ResourceVersion}, "spec": map[string]any{"consumerRef": consumer},
	}, a.client.Patch)
}

func (a api) WriteStatus(ctx context.Context, claim *v1alpha1.HostClaim, status v1alpha1.HostClaimStatus) (*v1alpha1.HostClaim, error) {
	now := named(claim)
	err := a.patch(ctx, "write the status of claim", now, map[string]any{
		"metadata": map[string]any{"resourceVersion": claim.ResourceVersion}, "status": status,
	}, func(ctx context.Context, o client.Object, p client.Patch, _ ...client.PatchOption) error {
		return a.client.Status().Patch(ctx, o, p)
	})
	if err == nil {
		a.wrote(now)
	}
	return now, err
}

func named(claim *v1alpha1.HostClaim) *v1alpha1.HostClaim {
	now := &v1alpha1.HostClaim{}
	now.Namespace, now.Name = claim.Namespace, claim.Name
	return now
}

type patchFunc func(context.Context, client.Object, client.Patch, ...client.PatchOption) error

// patch makes a merge patch, and reads the answer into o.
func (a api) patch(ctx context.Context, doing string, o client.Object, body any, send patchFunc) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	doing = fmt.Sprintf("%s %s/%s", doing, o.GetNamespace(), o.GetName())
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return translate(doing, send(ctx, o, client.RawPatch(types.MergePatchType, text)))
}

func translate(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%s: %w", doing, kube.ErrGone)
	case apierrors.IsConflict(err):
		return fmt.Errorf("%s: %w", doing, kube.ErrConflict)
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err):
		return fmt.Errorf("%w: %w", errRefused, err)
	default:
		return fmt.Errorf("%s: %w", doing, err)
	}
}
