package compat_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	upstream "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A program that was built with the other module makes, reads and changes our
// objects through the API, and neither side notices.
func TestProgramsOfTheOtherModule(t *testing.T) {
	k, _ := guarded(t)
	theirScheme, ourScheme := schemes(t)
	program, err := client.New(k.Config, client.Options{Scheme: theirScheme})
	if err != nil {
		t.Fatal(err)
	}
	namespace := k.Namespace(t)
	for _, ours := range samples(namespace) {
		gvk, err := k.Client.GroupVersionKindFor(ours)
		if err != nil {
			t.Fatal(err)
		}
		if !theirScheme.Recognizes(gvk) {
			continue
		}
		t.Run(gvk.Kind, func(t *testing.T) {
			theirs := empty(t, theirScheme, gvk.Kind).(client.Object)
			if err := json.Unmarshal(encode(t, ours), theirs); err != nil {
				t.Fatal(err)
			}
			if err := program.Create(t.Context(), theirs); err != nil {
				t.Fatal(err)
			}
			theirs.SetLabels(map[string]string{"rack": "7"})
			if err := program.Update(t.Context(), theirs); err != nil {
				t.Fatal(err)
			}
			read := empty(t, ourScheme, gvk.Kind).(client.Object)
			if err := k.Client.Get(t.Context(), client.ObjectKeyFromObject(ours), read); err != nil {
				t.Fatal(err)
			}
			var d differences
			d.compare(gvk.Kind, tree(t, encode(t, theirs))["spec"], tree(t, encode(t, read))["spec"])
			if all := append(append(d.lost, d.added...), d.changed...); len(all) > 0 || read.GetLabels()["rack"] != "7" {
				t.Errorf("they differ: %v", all)
			}
		})
	}
	var hosts upstream.BareMetalHostList
	if err := program.List(t.Context(), &hosts, client.InNamespace(namespace)); err != nil || len(hosts.Items) != 1 {
		t.Errorf("%d hosts, %v", len(hosts.Items), err)
	}
}

// What a definition does not have is dropped with a warning, or refused for
// whoever asks to be strict. A merge patch of a program that does not know a
// field leaves it alone.
func TestUnknownFields(t *testing.T) {
	k, _ := guarded(t)
	u, namespace := newUser(t, k), k.Namespace(t)
	h := func() *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "metadata": map[string]any{"namespace": namespace, "name": "a"},
			"spec": map[string]any{"online": true, "colour": "red", "networkInterfaces": []any{map[string]any{"name": "eth0"}}},
		}}
		return o
	}
	err := u.Create(t.Context(), h(), client.FieldValidation(metav1.FieldValidationStrict))
	if !apierrors.IsBadRequest(err) {
		t.Errorf("strictly: %v", err)
	}
	u.since()
	o := h()
	if err := u.Create(t.Context(), o, client.FieldValidation(metav1.FieldValidationWarn)); err != nil {
		t.Fatal(err)
	}
	u.isTold(t, `unknown field "spec.colour"`, "spec.networkInterfaces are checked and kept")
	if _, kept, _ := unstructured.NestedString(o.Object, "spec", "colour"); kept {
		t.Error("a field that the definition has not is kept")
	}

	theirs, _ := schemes(t)
	program, err := client.New(k.Config, client.Options{Scheme: theirs})
	if err != nil {
		t.Fatal(err)
	}
	old := &upstream.BareMetalHost{}
	if err := program.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "a"}, old); err != nil {
		t.Fatal(err)
	}
	before := old.DeepCopy()
	old.Spec.Online = false
	if err := program.Patch(t.Context(), old, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	now := &host{}
	if err := k.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "a"}, now); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(1, len(now.Spec.NetworkInterfaces)); diff != "" || now.Spec.Online {
		t.Errorf("interfaces that the program does not know: %s; online %t", diff, now.Spec.Online)
	}
}
