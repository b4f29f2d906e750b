package companion

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// An image that was kept before is let go once none are, also one that is being
// deleted: nobody else would. What others hold stays held.
func TestImagesAreLetGoOnceNoneAreKept(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	const others = "another.example.com/finalizer"
	gone := metav1.NewTime(now)
	image := &v1alpha1.PreprovisioningImage{ObjectMeta: metav1.ObjectMeta{
		Namespace: "lab", Name: "rack-1", DeletionTimestamp: &gone, Finalizers: []string{v1alpha1.HostPreprovisioningImageFinalizer, others},
	}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(image).Build()
	key := types.NamespacedName{Namespace: "lab", Name: "rack-1"}
	n := &notices{client: c, log: slog.New(slog.DiscardHandler), now: func() time.Time { return now }}
	get := func() *v1alpha1.PreprovisioningImage {
		i := &v1alpha1.PreprovisioningImage{}
		if err := c.Get(t.Context(), key, i); err != nil {
			t.Fatal(err)
		}
		return i
	}
	if err := see(t.Context(), n, get(), ramdiskNotice); err != nil {
		t.Fatal(err)
	}
	if f := get().Finalizers; !slices.Equal(f, []string{others}) {
		t.Errorf("it is held by %v", f)
	}
}
