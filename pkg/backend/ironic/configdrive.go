package ironic

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// configDrive is what the deployed system is told: metadata always, network and
// user data if the host has them. A live image gets none.
func (b *Backend) configDrive(ctx context.Context, h lifecycle.Host) (map[string]any, error) {
	if liveISO(h) {
		return nil, nil //nolint:nilnil // nil is no config drive
	}
	spec := h.Intent.Spec
	drive := map[string]any{}
	user, err := b.part(ctx, h, spec.UserData, "userData", true)
	if err != nil {
		return nil, err
	}
	if len(user) > 0 {
		drive["user_data"] = string(user)
	}
	network := spec.NetworkData
	if network == nil && spec.PreprovisioningNetworkDataName != "" {
		network = &corev1.SecretReference{Name: spec.PreprovisioningNetworkDataName}
	}
	networkData, err := b.object(ctx, h, network, "networkData", false)
	if err != nil {
		return nil, err
	}
	if networkData != nil {
		drive["network_data"] = networkData
	}
	own, err := b.object(ctx, h, spec.MetaData, "metaData", true)
	if err != nil {
		return nil, err
	}
	meta := metaData(h)
	maps.Copy(meta, own)
	drive["meta_data"] = meta
	return drive, nil
}

// metaData is what every system is told of itself.
func metaData(h lifecycle.Host) map[string]any {
	name := h.Intent.Name
	return map[string]any{
		"uuid": h.UID, "metal3-namespace": h.Intent.Namespace, "metal3-name": name, "local-hostname": name, "local_hostname": name, "name": name,
	}
}

// part is a part of the config drive, from the Secret that the host names under the
// key or under "value"; nil if it names none.
func (b *Backend) part(ctx context.Context, h lifecycle.Host, ref *corev1.SecretReference, key string, must bool) ([]byte, error) {
	if ref == nil || ref.Name == "" {
		return nil, nil
	}
	if ref.Namespace != "" && ref.Namespace != h.Intent.Namespace {
		return nil, badSecret(fmt.Sprintf("%s secret must be in same namespace as host %s", key, h.Name()), "Move the Secret to the host's namespace; it was not read")
	}
	data, _, err := b.beside.Secrets.Get(ctx, h.Intent.Namespace, ref.Name)
	if err != nil {
		return nil, err
	}
	for _, k := range []string{key, "value"} {
		if v, ok := data[k]; ok {
			return v, nil
		}
	}
	if !must {
		return nil, nil
	}
	return nil, badSecret(fmt.Sprintf("the Secret %s/%s has neither key %s nor value", h.Intent.Namespace, ref.Name, key), "Add the key; the deployment is tried again at once")
}

// object is a part that is YAML or JSON.
func (b *Backend) object(ctx context.Context, h lifecycle.Host, ref *corev1.SecretReference, key string, must bool) (map[string]any, error) {
	raw, err := b.part(ctx, h, ref, key, must)
	if err != nil || len(raw) == 0 {
		return nil, err
	}
	var o map[string]any
	if yaml.Unmarshal(raw, &o) != nil { // its error may quote what is in the Secret
		return nil, badSecret(fmt.Sprintf("the %s in the Secret %s/%s is neither a YAML nor a JSON object", key, h.Intent.Namespace, ref.Name), "Correct it; the deployment is tried again at once")
	}
	return o, nil
}

func badSecret(message, next string) error {
	return problemError(event.Deploy, event.ClassImage, message, next)
}
