package apiserver_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/integration/internal/lab"
)

func TestRolesAreInForce(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens.csv")
	if err := os.WriteFile(tokens, []byte("t0ken,reader,1,\"readers,staff\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	kube := shared.StartKube(t, t.TempDir(), "-tokens", tokens)
	namespace := kube.Namespace(t)
	allow(t, kube, namespace, rbacv1.Subject{Kind: "Group", Name: "readers"})

	for name, reader := range map[string]client.Client{
		"a user by a token":       kube.WithToken(t, "t0ken"),
		"a user by impersonation": kube.As(t, "somebody", "readers", "system:authenticated"),
	} {
		t.Run(name, func(t *testing.T) {
			lab.Eventually(t, patience, "read as the role allows", func() error {
				return reader.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(namespace))
			})
			if err := reader.Create(t.Context(), configMap(namespace, "made")); !apierrors.IsForbidden(err) {
				t.Errorf("create: %v, want forbidden", err)
			}
			if err := reader.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace("default")); !apierrors.IsForbidden(err) {
				t.Errorf("list in another namespace: %v, want forbidden", err)
			}
		})
	}
	if err := kube.WithToken(t, "another").List(t.Context(), &corev1.ConfigMapList{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("an unknown token: %v, want unauthorized", err)
	}
}

// Nobody hands out rights that they do not have.
func TestRolesCannotBeEscalated(t *testing.T) {
	kube := shared.Kube(t)
	namespace := kube.Namespace(t)
	allow(t, kube, namespace, rbacv1.Subject{Kind: "User", Name: "climber"}, rbacv1.PolicyRule{
		APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles"}, Verbs: []string{"create"},
	})
	climber := kube.As(t, "climber", "system:authenticated")
	wish := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "wish"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}},
	}
	lab.Eventually(t, patience, "be refused for what the role would allow, not for making it", func() error {
		err := climber.Create(t.Context(), wish)
		if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "attempting to grant RBAC permissions") {
			return nil
		}
		return fmt.Errorf("got %w", err)
	})
}

// allow lets a subject list config maps in a namespace, and more.
func allow(t *testing.T, kube *lab.Kube, namespace string, who rbacv1.Subject, more ...rbacv1.PolicyRule) {
	t.Helper()
	who.APIGroup = rbacv1.GroupName
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "reader"},
		Rules:      append(more, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}}),
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "reader"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
		Subjects:   []rbacv1.Subject{who},
	}
	for _, object := range []client.Object{role, binding} {
		if err := kube.Client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}
