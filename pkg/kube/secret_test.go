package kube_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalbus/metalbus/pkg/kube"
	"github.com/metalbus/metalbus/pkg/kube/kubetest"
)

// secrets reads from an API that holds one Secret, lab/bmc.
func secrets(t *testing.T, data map[string]string) *kube.Secrets {
	t.Helper()
	api := kubetest.New(t)
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "bmc"}, Data: map[string][]byte{}}
	for k, v := range data {
		s.Data[k] = []byte(v)
	}
	kubetest.NewUser(t, api.Config(), "lab").Create(s)
	return open(t, api.Kubeconfig())
}

func open(t *testing.T, kubeconfig string) *kube.Secrets {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := kube.OpenSecrets(kube.Access{Kubeconfig: path})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestLogin(t *testing.T) {
	tests := map[string]struct {
		data map[string]string
		want [2]string
		err  error
		says string
	}{
		"as it is":                         {map[string]string{"username": "admin", "password": "p w"}, [2]string{"admin", "p w"}, nil, ""},
		"a line feed at the end is a slip": {map[string]string{"username": "admin\n", "password": "\tpass\r\n"}, [2]string{"admin", "pass"}, nil, ""},
		"control characters around it too": {map[string]string{"username": "\x00admin", "password": "pass\x1b"}, [2]string{"admin", "pass"}, nil, ""},
		"no user name":                     {map[string]string{"password": "s3cret"}, [2]string{}, kube.ErrKeyMissing, `no key "username"`},
		"no password":                      {map[string]string{"username": "admin"}, [2]string{}, kube.ErrKeyMissing, `no key "password"`},
		"an empty password":                {map[string]string{"username": "admin", "password": ""}, [2]string{}, kube.ErrKeyEmpty, `"password"`},
		"a blank user name":                {map[string]string{"username": " \n", "password": "s3cret"}, [2]string{}, kube.ErrKeyEmpty, `"username"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := secrets(t, tc.data)
			secret, err := s.Get(t.Context(), "lab", "bmc")
			if err != nil {
				t.Fatal(err)
			}
			user, password, err := secret.Login()
			if diff := cmp.Diff(tc.want, [2]string{user, password}); diff != "" {
				t.Error(diff)
			}
			if !errors.Is(err, tc.err) {
				t.Fatalf("got %v, want %v", err, tc.err)
			}
			if err != nil && (!strings.Contains(err.Error(), tc.says) || !strings.Contains(err.Error(), "lab/bmc") || strings.Contains(err.Error(), "s3cret")) {
				t.Errorf("it says %q", err)
			}
		})
	}
}

func TestASecretThatIsNotThere(t *testing.T) {
	_, err := secrets(t, nil).Get(t.Context(), "lab", "nowhere")
	if !errors.Is(err, kube.ErrSecretMissing) || !strings.Contains(err.Error(), "lab/nowhere") {
		t.Errorf("got %v", err)
	}
}

func TestAnAPIThatRefuses(t *testing.T) {
	tests := map[string]struct {
		code int
		own  bool // the Secret's own trouble
	}{
		"forbidden":     {http.StatusForbidden, true},
		"out of order":  {http.StatusInternalServerError, false},
		"not logged in": {http.StatusUnauthorized, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(tc.code)
				fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, map[int]string{403: "Forbidden", 401: "Unauthorized"}[tc.code], tc.code)
			}))
			defer server.Close()
			s := open(t, fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n", server.URL))
			_, err := s.Get(t.Context(), "lab", "bmc")
			if _, own := errors.AsType[*kube.SecretError](err); own != tc.own || err == nil {
				t.Errorf("got %v", err)
			}
			if errors.Is(err, kube.ErrSecretForbidden) != tc.own {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestASecretDoesNotShowItself(t *testing.T) {
	secret, err := secrets(t, map[string]string{"username": "admin", "password": "s3cret"}).Get(t.Context(), "lab", "bmc")
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("read", "secret", secret, "inside", struct{ S kube.Secret }{secret})
	texts := []string{fmt.Sprint(secret), fmt.Sprintf("%v %+v %#v %s", secret, secret, secret, secret), fmt.Sprintf("%+v", struct{ S kube.Secret }{secret}), log.String()}
	for _, text := range texts {
		if strings.Contains(text, "s3cret") || strings.Contains(text, "115 51 99") {
			t.Errorf("it shows %q", text)
		}
	}
	if v, err := secret.Value("value", "password"); err != nil || string(v) != "s3cret" {
		t.Errorf("the first key that is there has %q, %v", v, err)
	}
}
