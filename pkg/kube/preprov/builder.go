package preprov

import (
	"cmp"
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// builder says of each image which of the ramdisks that serve all it is. Nothing is
// built that would have to be thrown away, so it holds no image by a finalizer: one
// that another builder has left it takes off in the end.
type builder struct {
	cfg    Config
	client client.Client
	now    func() time.Time
	image  func(types.NamespacedName) (*v1alpha1.PreprovisioningImage, bool)
	// network is the version of a Secret, "" if there is none.
	network func(ctx context.Context, namespace, name string) (string, error)
}

// A missing Secret is looked for again after as long as it has been missing and a
// little more, but at least so often.
const (
	missedSoon = 10 * time.Second
	missedLate = 10 * time.Minute
)

// look answers for one image.
func (b *builder) look(ctx context.Context, key types.NamespacedName) (again time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	image, exists := b.image(key)
	switch {
	case !exists:
		return 0, nil
	case image.DeletionTimestamp != nil && slices.Equal(image.Finalizers, []string{v1alpha1.PreprovisioningImageFinalizer}):
		return 0, said("let go of", image, setFinalizers(ctx, b.client, image, nil))
	}
	network := ""
	if name := image.Spec.NetworkDataName; name != "" {
		if network, err = b.network(ctx, image.Namespace, name); err != nil {
			return 0, err
		}
	}
	status := b.answer(image, network)
	if missed := meta.FindStatusCondition(status.Conditions, string(v1alpha1.ConditionImageError)); missed.Reason == string(v1alpha1.ImageMissingNetworkDataReason) {
		again = min(b.now().Sub(missed.LastTransitionTime.Time)+missedSoon, missedLate)
	}
	if equality.Semantic.DeepEqual(status, image.Status) {
		return again, nil
	}
	return again, writeStatus(ctx, b.client, image, status)
}

// answer is the status of an image, given the version of the Secret that it names.
func (b *builder) answer(image *v1alpha1.PreprovisioningImage, network string) v1alpha1.PreprovisioningImageStatus {
	spec := image.Spec
	arch := spec.Architecture
	if arch == "" {
		arch = ownArchitecture()
	}
	i := slices.IndexFunc(spec.AcceptFormats, func(f v1alpha1.ImageFormat) bool { return b.cfg.ready(arch, f) })
	switch {
	case !b.cfg.serves(arch):
		return b.refusal(image, v1alpha1.ImageConfigurationErrorReason, "Architecture not supported")
	case i < 0:
		return b.refusal(image, v1alpha1.ImageConfigurationErrorReason, "No acceptable image format supported")
	case spec.NetworkDataName != "" && network == "":
		return b.refusal(image, v1alpha1.ImageMissingNetworkDataReason, "NetworkData secret not found")
	}
	s := v1alpha1.PreprovisioningImageStatus{Format: spec.AcceptFormats[i], Architecture: spec.Architecture}
	if spec.NetworkDataName != "" {
		s.NetworkData = v1alpha1.SecretStatus{Name: spec.NetworkDataName, Version: network}
	}
	if s.Format == v1alpha1.ImageFormatISO {
		s.ImageUrl = b.cfg.ISO.of(arch)
	} else {
		s.ImageUrl, s.KernelUrl = b.cfg.Initrd.of(arch), b.cfg.Kernel.of(arch)
	}
	s.Conditions = b.conditions(image, metav1.ConditionTrue, v1alpha1.ImageSuccessReason, "Generated image")
	return s
}

// refusal is the status of an image that there is none for.
func (b *builder) refusal(image *v1alpha1.PreprovisioningImage, reason, message string) v1alpha1.PreprovisioningImageStatus {
	return v1alpha1.PreprovisioningImageStatus{Conditions: b.conditions(image, metav1.ConditionFalse, reason, message)}
}

// conditions are those of an image that is ready, or is in error; what others say
// stays, but for the notice that nobody answers.
func (b *builder) conditions(image *v1alpha1.PreprovisioningImage, ready metav1.ConditionStatus, reason, message string) []metav1.Condition {
	list := image.Status.DeepCopy().Conditions
	meta.RemoveStatusCondition(&list, v1alpha1.SupportedCondition)
	failed := metav1.ConditionTrue
	if ready == metav1.ConditionTrue {
		failed = metav1.ConditionFalse
	}
	for kind, status := range map[v1alpha1.ImageStatusConditionType]metav1.ConditionStatus{v1alpha1.ConditionImageReady: ready, v1alpha1.ConditionImageError: failed} {
		meta.SetStatusCondition(&list, metav1.Condition{
			Type: string(kind), Status: status, Reason: reason, Message: message, ObservedGeneration: image.Generation,
			LastTransitionTime: metav1.NewTime(b.now().UTC().Truncate(time.Second)),
		})
	}
	slices.SortFunc(list, func(x, y metav1.Condition) int { return cmp.Compare(x.Type, y.Type) })
	return list
}
