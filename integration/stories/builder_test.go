package stories_test

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// builder is the site's user as somebody who builds images.
func (r *script) builder() (*play, error) {
	p, ok := r.site.user.(*play)
	if !ok || !p.images {
		return nil, errors.New("there are no images here: want a line «images own»")
	}
	return p, nil
}

// image answers the host's PreprovisioningImage, which is waited for: ready URL says
// that it was built with the present network data, stale URL with older ones, error
// MESSAGE that it cannot be; gone deletes it. It is free once nothing of ours holds it.
func (r *script) image(args []string) error {
	r.Helper()
	p, err := r.builder()
	if err != nil {
		return err
	}
	i := &v1alpha1.PreprovisioningImage{ObjectMeta: metav1.ObjectMeta{Name: r.site.name}}
	if args[0] == "free" {
		p.awaited("the PreprovisioningImage to be let go", func() bool { return !p.user.Read(i) || len(i.Finalizers) == 0 })
		return nil
	}
	p.awaited("the PreprovisioningImage", func() bool { return p.user.Read(i) && i.DeletionTimestamp == nil })
	switch args[0] {
	case "gone":
		p.user.Delete(i)
	case "ready", "stale":
		p.user.ChangeStatusOf(i, func() { built(i, args[1], r.version(p, i, args[0])) })
	case "error":
		p.user.ChangeStatusOf(i, func() { verdict(i, v1alpha1.ConditionImageError, metav1.ConditionTrue, args[1]) })
	default:
		return fmt.Errorf("no image can be %s", args[0])
	}
	return nil
}

// version is the version of the Secret with the image's network data.
func (r *script) version(p *play, i *v1alpha1.PreprovisioningImage, how string) string {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: i.Spec.NetworkDataName}}
	if how == "stale" || s.Name == "" || !p.user.Read(s) {
		return ""
	}
	return s.ResourceVersion
}

func built(i *v1alpha1.PreprovisioningImage, url, version string) {
	i.Status.ImageUrl, i.Status.Format, i.Status.Architecture = url, i.Spec.AcceptFormats[0], i.Spec.Architecture
	i.Status.NetworkData = v1alpha1.SecretStatus{Name: i.Spec.NetworkDataName, Version: version}
	verdict(i, v1alpha1.ConditionImageError, metav1.ConditionFalse, "")
	verdict(i, v1alpha1.ConditionImageReady, metav1.ConditionTrue, "")
}

func verdict(i *v1alpha1.PreprovisioningImage, kind v1alpha1.ImageStatusConditionType, status metav1.ConditionStatus, message string) {
	meta.SetStatusCondition(&i.Status.Conditions, metav1.Condition{
		Type: string(kind), Status: status, Reason: v1alpha1.ImageSuccessReason, Message: message, ObservedGeneration: i.Generation,
	})
}

// network makes the Secret of that name, with network data.
func (r *script) network(name string) error {
	p, err := r.builder()
	if err != nil {
		return err
	}
	p.user.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{"networkData": []byte("{}")}})
	return nil
}
