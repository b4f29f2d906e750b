package compat_test

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/integration/internal/lab"
)

// rule is a rule on new objects, with one that it takes and one that it
// refuses.
type rule struct {
	good, bad client.Object
	want      refusal
}

// refusal is what is said of an object that is not taken.
type refusal struct {
	field string
	says  string // a part of the reason
}

// check fails the test unless the API has refused an object like that.
func (want refusal) check(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		t.Error("it is taken")
		return
	}
	if !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
		t.Errorf("neither invalid nor forbidden: %v", err)
	}
	var refused *apierrors.StatusError
	if !errors.As(err, &refused) || refused.ErrStatus.Details == nil {
		t.Fatalf("no details: %v", err)
	}
	for _, cause := range refused.ErrStatus.Details.Causes {
		if cause.Field == want.field && strings.Contains(cause.Message, want.says) {
			return
		}
	}
	t.Errorf("want %s: …%s…\ngot %+v", want.field, want.says, refused.ErrStatus.Details.Causes)
}

// try makes both objects of each rule in a namespace of their own.
func try(t *testing.T, k *lab.Kube, rules map[string]rule) {
	t.Helper()
	namespace := k.Namespace(t)
	for name, r := range rules {
		t.Run(name, func(t *testing.T) {
			for _, o := range []client.Object{r.good, r.bad} {
				o.SetNamespace(namespace)
				if o.GetName() == "" {
					o.SetGenerateName("one-")
				}
			}
			if err := k.Client.Create(t.Context(), r.good); err != nil {
				t.Errorf("the good one is refused: %v", err)
			}
			r.want.check(t, k.Client.Create(t.Context(), r.bad))
		})
	}
}

// update is a rule on changes of an object that is stored already.
type update[T client.Object] struct {
	stored    T
	good, bad func(T)
	want      refusal
}

// tryUpdate stores the object of each rule and makes both changes.
func tryUpdate[T client.Object](t *testing.T, k *lab.Kube, rules map[string]update[T]) {
	t.Helper()
	namespace := k.Namespace(t)
	for name, r := range rules {
		t.Run(name, func(t *testing.T) {
			o := store(t, k, namespace, r.stored)
			worse := o.DeepCopyObject().(T)
			r.bad(worse)
			r.want.check(t, k.Client.Update(t.Context(), worse))
			r.good(o)
			if err := k.Client.Update(t.Context(), o); err != nil {
				t.Errorf("the good change is refused: %v", err)
			}
		})
	}
}

// store makes an object, a host with the status that it has.
func store[T client.Object](t *testing.T, k *lab.Kube, namespace string, wanted T) T {
	t.Helper()
	wanted.SetNamespace(namespace)
	wanted.SetGenerateName("one-")
	o := wanted.DeepCopyObject().(T)
	if err := k.Client.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if h, ok := any(o).(*host); ok {
		h.Status = any(wanted).(*host).Status
		if err := k.Client.Status().Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	return o
}
