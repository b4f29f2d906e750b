package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// SecretVersion is the version of a Secret that a host names, "" if there is
// none. It writes nothing. It may be called only while Serve runs.
func (c *Cluster) SecretVersion(ctx context.Context, namespace, name string) (string, error) {
	m, _, err := c.refs.secret(ctx, types.NamespacedName{Namespace: namespace, Name: name})
	return m.version, err
}

// KnownSecret is the version of a Secret as far as it is remembered, without
// asking the API.
func (c *Cluster) KnownSecret(namespace, name string) string {
	c.refs.mu.Lock()
	defer c.refs.mu.Unlock()
	return c.refs.secrets[types.NamespacedName{Namespace: namespace, Name: name}].version
}

// ClaimSecret marks a Secret as one that a host needs, in one write if any is
// needed: our label unless it has one of that key, the host as an owner that
// does not control it, and a finalizer that keeps it until ReleaseSecret. It
// returns the Secret's version after that, "" if there is no such Secret. It
// may be called only while Serve runs.
func (c *Cluster) ClaimSecret(ctx context.Context, o *v1alpha1.BareMetalHost, name string) (string, error) {
	key := types.NamespacedName{Namespace: o.Namespace, Name: name}
	m, exists, err := c.refs.secret(ctx, key)
	if err != nil || !exists {
		return "", err
	}
	if m.moving || m.deleting || (m.labelled && m.finalized && slices.Contains(m.owners, o.UID)) {
		return m.version, nil
	}
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = key.Namespace, key.Name
	err = c.write(ctx, writeSecret, "claim Secret "+key.String(), func(ctx context.Context) error {
		return c.client.Patch(ctx, secret, client.RawPatch(types.StrategicMergePatchType, claim(o, m)))
	})
	if errors.Is(err, ErrGone) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	c.refs.remember(secret)
	return secret.ResourceVersion, nil
}

// claim is the patch that claims a Secret. Lists of a Secret's metadata are
// merged by the API, so what others put there stays.
func claim(o *v1alpha1.BareMetalHost, m secretMeta) []byte {
	owner := map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "BareMetalHost", "name": o.Name, "uid": o.UID,
		"controller": nil, "blockOwnerDeletion": nil,
	}
	meta := map[string]any{"finalizers": []string{v1alpha1.SecretFinalizer}, "ownerReferences": []any{owner}}
	if !m.labelled {
		meta["labels"] = map[string]string{v1alpha1.LabelEnvironmentName: v1alpha1.LabelEnvironmentValue}
	}
	return mustJSON(map[string]any{"metadata": meta})
}

// ReleaseSecret takes our finalizer off a Secret, unless another host names it.
func (c *Cluster) ReleaseSecret(ctx context.Context, o *v1alpha1.BareMetalHost, name string) error {
	key := types.NamespacedName{Namespace: o.Namespace, Name: name}
	others := slices.ContainsFunc(c.Hosts.named(key), func(r Ref) bool { return r.UID != string(o.UID) })
	if name == "" || others {
		return nil
	}
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = key.Namespace, key.Name
	patch := mustJSON(map[string]any{"metadata": map[string]any{"$deleteFromPrimitiveList/finalizers": []string{v1alpha1.SecretFinalizer}}})
	return ignoreGone(c.write(ctx, writeSecret, "release Secret "+key.String(), func(ctx context.Context) error {
		return c.client.Patch(ctx, secret, client.RawPatch(types.StrategicMergePatchType, patch))
	}))
}

// HardwareVersion is the version of a host's HardwareData, "" if there is
// none. It may be called only while Serve runs.
func (c *Cluster) HardwareVersion(namespace, name string) string {
	c.refs.mu.Lock()
	defer c.refs.mu.Unlock()
	return c.refs.hardware[types.NamespacedName{Namespace: namespace, Name: name}]
}

// ReadHardware reads the hardware in a host's HardwareData, nil if there is none.
func (c *Cluster) ReadHardware(ctx context.Context, namespace, name string) (*v1alpha1.HardwareDetails, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	data := &v1alpha1.HardwareData{}
	err := c.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, data)
	if client.IgnoreNotFound(err) != nil {
		return nil, translate(fmt.Sprintf("read HardwareData %s/%s", namespace, name), err)
	}
	return data.Spec.HardwareDetails, nil
}

// PutHardware makes the host's HardwareData, or replaces what it says. The
// host controls it, and a finalizer keeps it until ReleaseHardware.
func (c *Cluster) PutHardware(ctx context.Context, o *v1alpha1.BareMetalHost, hw *v1alpha1.HardwareDetails) error {
	doing := fmt.Sprintf("write HardwareData %s/%s", o.Namespace, o.Name)
	data := &v1alpha1.HardwareData{Spec: v1alpha1.HardwareDataSpec{HardwareDetails: hw}}
	data.Namespace, data.Name = o.Namespace, o.Name
	data.Finalizers = []string{v1alpha1.HardwareDataFinalizer}
	data.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(o, v1alpha1.GroupVersion.WithKind("BareMetalHost"))}
	exists := false
	err := c.write(ctx, writeHardwareData, doing, func(ctx context.Context) error {
		err := c.client.Create(ctx, data)
		exists = isExists(err)
		if exists {
			return nil
		}
		return err
	})
	if err != nil || !exists {
		return err
	}
	return c.replaceHardware(ctx, doing, data)
}

// replaceHardware overwrites the specification of the HardwareData that is
// there, and keeps what others put into its metadata.
func (c *Cluster) replaceHardware(ctx context.Context, doing string, want *v1alpha1.HardwareData) error {
	there := &v1alpha1.HardwareData{}
	if err := c.client.Get(ctx, client.ObjectKeyFromObject(want), there); err != nil {
		return translate(doing, err)
	}
	if there.DeletionTimestamp != nil {
		return fmt.Errorf("%s: it is being deleted: %w", doing, ErrConflict)
	}
	was := there.DeepCopy()
	there.Spec = want.Spec
	if !slices.Contains(there.Finalizers, v1alpha1.HardwareDataFinalizer) {
		there.Finalizers = append(there.Finalizers, v1alpha1.HardwareDataFinalizer)
	}
	there.OwnerReferences = slices.DeleteFunc(there.OwnerReferences, func(r metav1.OwnerReference) bool { return r.Kind == "BareMetalHost" })
	there.OwnerReferences = append(there.OwnerReferences, want.OwnerReferences...)
	if apiequality.Semantic.DeepEqual(was, there) {
		return nil
	}
	return c.write(ctx, writeHardwareData, doing, func(ctx context.Context) error { return c.client.Update(ctx, there) })
}

// ReleaseHardware takes our finalizer off the host's HardwareData, so that it
// goes with its host.
func (c *Cluster) ReleaseHardware(ctx context.Context, o *v1alpha1.BareMetalHost) error {
	doing := fmt.Sprintf("release HardwareData %s/%s", o.Namespace, o.Name)
	data := &metadata{}
	data.SetGroupVersionKind(hardwareKind())
	if err := c.client.Get(ctx, client.ObjectKeyFromObject(o), data); err != nil {
		return ignoreGone(translate(doing, err))
	}
	patch, has := withoutFinalizer(data, v1alpha1.HardwareDataFinalizer)
	if !has {
		return nil
	}
	return ignoreGone(c.write(ctx, writeHardwareData, doing, func(ctx context.Context) error {
		return c.client.Patch(ctx, data, client.RawPatch(types.MergePatchType, patch))
	}))
}

func ignoreGone(err error) error {
	if errors.Is(err, ErrGone) {
		return nil
	}
	return err
}
