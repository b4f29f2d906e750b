package hostwish

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/admission"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// imageOf is the DataImage of a host: that of its name.
func (w *Wishes) imageOf(o *v1alpha1.BareMetalHost) (*v1alpha1.DataImage, bool) {
	return w.images.Get(client.ObjectKeyFromObject(o))
}

// dataImage is what is to be in the drive, nil for nothing.
func (w *Wishes) dataImage(o *v1alpha1.BareMetalHost) *event.DataImageWish {
	d, there := w.imageOf(o)
	if !there || d.DeletionTimestamp != nil || d.Spec.URL == "" || refusedImage(d) != "" {
		return nil
	}
	return &event.DataImageWish{URL: v1alpha1.WithoutLogin(d.Spec.URL)}
}

// refusedImage says why a DataImage is not followed, "" if it is: one with a login is
// where it is in the drive already.
func refusedImage(d *v1alpha1.DataImage) string {
	if v1alpha1.WithoutLogin(d.Status.AttachedImage.URL) == v1alpha1.WithoutLogin(d.Spec.URL) {
		return ""
	}
	return loginText(admission.DataImageLogins(d))
}

// loginText is what to say of a login in a URL, "" if there is none.
func loginText(faults field.ErrorList) string {
	if len(faults) == 0 {
		return ""
	}
	return faults.ToAggregate().Error()
}

func (w *Wishes) imageDigest(o *v1alpha1.BareMetalHost) string {
	d, there := w.imageOf(o)
	if !there {
		return ""
	}
	return fmt.Sprintf("%s %v %s ", d.UID, d.DeletionTimestamp != nil, d.Spec.URL)
}

func (w *Wishes) showImage(ctx context.Context, o *v1alpha1.BareMetalHost, h lifecycle.Host) error {
	d, there := w.imageOf(o)
	if !there || moving(d) {
		return nil
	}
	switch {
	case d.DeletionTimestamp != nil && imageMayGo(h):
		return w.unhold(ctx, d, v1alpha1.DataImageFinalizer)
	case d.DeletionTimestamp == nil && o.DeletionTimestamp == nil:
		held, err := w.hold(ctx, d, o, v1alpha1.DataImageFinalizer)
		if err != nil {
			return err
		}
		d = held.(*v1alpha1.DataImage)
	}
	want := imageStatus(h.Provisioning.Media)
	if why := refusedImage(d); why != "" && d.DeletionTimestamp == nil {
		want.Error = v1alpha1.DataImageError{Count: 1, Message: why}
	}
	if sameImageStatus(d.Status, want) {
		return nil
	}
	return w.write(ctx, d, want)
}

// imageMayGo reports whether the DataImage of a host need not be kept any more:
// the drive is empty and stays so, or nobody can empty it now, or the host goes,
// which empties it on its way whether there is a DataImage or not.
func imageMayGo(h lifecycle.Host) bool {
	return leaves(h) || (h.Intent.DataImage == nil && !lifecycle.MediaHeld(h))
}

// imageStatus is what is shown of the drive. The time is that of the newest try.
func imageStatus(cd event.VirtualCD) v1alpha1.DataImageStatus {
	s := v1alpha1.DataImageStatus{AttachedImage: v1alpha1.AttachedImageReference{URL: cd.URL}}
	if !cd.TriedAt.IsZero() {
		at := metav1.NewTime(cd.TriedAt.UTC()).Rfc3339Copy()
		s.LastReconciled = &at
	}
	if cd.Problem != nil {
		s.Error = v1alpha1.DataImageError{Count: cd.Failures, Message: lifecycle.Message(*cd.Problem)}
	}
	return s
}

func sameImageStatus(a, b v1alpha1.DataImageStatus) bool {
	same := a.AttachedImage == b.AttachedImage && a.Error == b.Error
	return same && (b.LastReconciled == nil || a.LastReconciled.Equal(b.LastReconciled))
}
