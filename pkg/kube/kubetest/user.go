package kubetest

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// User is somebody with kubectl, in one namespace. What goes wrong ends the test.
type User struct {
	tb        testing.TB
	client    client.Client
	namespace string
}

// NewUser is a user of an API that has the kinds of this package.
func NewUser(tb testing.TB, access *rest.Config, namespace string) User {
	tb.Helper()
	return User{tb: tb, client: Client(tb, access), namespace: namespace}
}

// Create makes objects in the user's namespace.
func (u User) Create(objects ...client.Object) {
	u.tb.Helper()
	for _, o := range objects {
		o.SetNamespace(u.namespace)
		if err := u.client.Create(u.tb.Context(), o); err != nil {
			u.tb.Fatal(err)
		}
	}
}

// Host reads a host; nil if there is none.
func (u User) Host(name string) *v1alpha1.BareMetalHost {
	u.tb.Helper()
	o := &v1alpha1.BareMetalHost{}
	o.SetName(name)
	if !u.Read(o) {
		return nil
	}
	return o
}

// Read reads the object of that name; false if there is none.
func (u User) Read(o client.Object) bool {
	u.tb.Helper()
	err := u.client.Get(u.tb.Context(), client.ObjectKey{Namespace: u.namespace, Name: o.GetName()}, o)
	if client.IgnoreNotFound(err) != nil {
		u.tb.Fatal(err)
	}
	return err == nil
}

// Change edits a host, again if somebody else does so meanwhile.
func (u User) Change(name string, edit func(*v1alpha1.BareMetalHost)) {
	u.tb.Helper()
	u.change(name, edit, func(o *v1alpha1.BareMetalHost) error { return u.client.Update(u.tb.Context(), o) })
}

// ChangeStatus edits the status of a host.
func (u User) ChangeStatus(name string, edit func(*v1alpha1.BareMetalHost)) {
	u.tb.Helper()
	u.change(name, edit, func(o *v1alpha1.BareMetalHost) error { return u.client.Status().Update(u.tb.Context(), o) })
}

func (u User) change(name string, edit func(*v1alpha1.BareMetalHost), write func(*v1alpha1.BareMetalHost) error) {
	u.tb.Helper()
	for {
		o := u.Host(name)
		if o == nil {
			u.tb.Fatalf("host %s is gone", name)
			return
		}
		if o.Annotations == nil {
			o.Annotations = map[string]string{}
		}
		edit(o)
		err := write(o)
		if err == nil {
			return
		}
		if !apierrors.IsConflict(err) {
			u.tb.Fatal(err)
		}
	}
}

// Edit makes the object of that name, or changes it, again if somebody else does so
// meanwhile. edit changes o.
func (u User) Edit(o client.Object, edit func()) {
	u.tb.Helper()
	for {
		write := u.client.Create
		if u.Read(o) {
			write = func(ctx context.Context, o client.Object, _ ...client.CreateOption) error {
				return u.client.Update(ctx, o)
			}
		}
		o.SetNamespace(u.namespace)
		edit()
		err := write(u.tb.Context(), o)
		if err == nil {
			return
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			u.tb.Fatal(err)
		}
	}
}

// Update writes an object as it is given.
func (u User) Update(o client.Object) {
	u.tb.Helper()
	if err := u.client.Update(u.tb.Context(), o); err != nil {
		u.tb.Fatal(err)
	}
}

// ChangeStatusOf edits the status of the object of that name, as it is by then, again
// if somebody else does so meanwhile.
func (u User) ChangeStatusOf(o client.Object, edit func()) {
	u.tb.Helper()
	for {
		if !u.Read(o) {
			u.tb.Fatalf("%T %s is gone", o, o.GetName())
		}
		edit()
		err := u.client.Status().Update(u.tb.Context(), o)
		if err == nil {
			return
		}
		if !apierrors.IsConflict(err) {
			u.tb.Fatal(err)
		}
	}
}

// Delete deletes the object of that name.
func (u User) Delete(o client.Object) {
	u.tb.Helper()
	o.SetNamespace(u.namespace)
	if err := u.client.Delete(u.tb.Context(), o); err != nil {
		u.tb.Fatal(err)
	}
}

// DeleteHost deletes a host.
func (u User) DeleteHost(name string) {
	u.tb.Helper()
	u.Delete(&v1alpha1.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// TryChange edits a host once, and bears with a host that is gone or that
// somebody else has changed.
func (u User) TryChange(name string, edit func(*v1alpha1.BareMetalHost)) {
	u.tb.Helper()
	o := u.Host(name)
	if o == nil {
		return
	}
	edit(o)
	if err := u.client.Update(u.tb.Context(), o); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		u.tb.Fatal(err)
	}
}
