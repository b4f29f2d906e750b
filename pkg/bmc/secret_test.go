package bmc_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/metalbus/metalbus/pkg/bmc"
	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
	"github.com/metalbus/metalbus/pkg/bmc/bmctest"
)

const canary = "S3cret-canary/&+%7"

// leaks tells whether a text has the canary in any of its forms.
func leaks(text string) bool {
	for _, form := range []string{canary, url.QueryEscape(canary), url.PathEscape(canary), base64.StdEncoding.EncodeToString([]byte("admin:" + canary)), base64.StdEncoding.EncodeToString([]byte(canary))} {
		if strings.Contains(text, form) {
			return true
		}
	}
	return false
}

func TestCredentialsHideThePassword(t *testing.T) {
	c := bmc.NewCredentials("admin", canary)
	target := bmc.Target{BaseURL: "https://192.0.2.1", Credentials: c}
	pool := bmctest.Pool(t, bmc.Config{})
	b := bmctest.Open(t, pool, target)
	var out bytes.Buffer
	for _, v := range []any{c, &c, target, &target, b, *b, []bmc.Credentials{c}, map[string]bmc.Credentials{"x": c}, struct{ c bmc.Credentials }{c}, pool} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
		if j, err := json.Marshal(v); err == nil {
			out.Write(j)
		}
		slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "v", v)
		slog.New(slog.NewTextHandler(&out, nil)).Info("x", "v", v)
	}
	if leaks(out.String()) || strings.Contains(out.String(), fmt.Sprintf("%x", canary)) {
		t.Errorf("the password shows in:\n%s", out.String())
	}
	if !strings.Contains(c.String(), "admin") {
		t.Errorf("the user name does not show in %q", c)
	}
}

// everything calls all there is, and gives all errors.
func everything(t *testing.T, b *bmc.BMC) error {
	t.Helper()
	ctx := t.Context()
	_, e1 := b.Check(ctx)
	_, e2 := b.State(ctx)
	_, e3 := b.Inventory(ctx)
	_, e4 := b.Drives(ctx)
	return errors.Join(e1, e2, e3, e4, b.SetPower(ctx, bmc.TurnOn), b.SetPower(ctx, bmc.Cycle), b.SetBootOnce(ctx, bmc.Cd, bmc.UEFI),
		b.InsertMedia(ctx, "http://admin:"+url.QueryEscape(canary)+"@images.example/x.iso"), b.EjectMedia(ctx))
}

func TestNoErrorShowsThePassword(t *testing.T) {
	for name, faults := range map[string]bmcsim.Faults{
		"down": {Down: true}, "busy": {Unavailable: true}, "dropping": {Drop: true}, "lost": {Lost: true}, "refusing": {RefusePower: true, RefuseMedia: true}, "wrong password": {WrongPassword: true},
	} {
		for _, profile := range bmcsim.Profiles() {
			l := newLab(t, profile, bmc.Config{})
			l.host.SetCredentials("admin", canary)
			b := l.open(t)
			_, err := b.Check(t.Context())
			must(t, err)
			l.host.SetFaults(faults)
			err = everything(t, b)
			if err == nil || leaks(err.Error()) || leaks(fmt.Sprintf("%+v %#v", err, err)) {
				t.Errorf("%s, %s: %v", name, profile, err)
			}
		}
	}
}

// A BMC may send back whatever it was sent.
func TestABMCThatRepeatsThePasswordIsNotQuoted(t *testing.T) {
	for _, status := range []int{400, 401, 403, 404, 409, 500, 503} {
		login := status == 401 || status == 403 // then it is the login that goes wrong
		base := server(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/redfish/v1/" {
				_, _ = w.Write([]byte(`{"RedfishVersion": "1.0.0", "Links": {"Sessions": {"@odata.id": "/redfish/v1/Sessions"}}}`))
				return
			}
			if strings.HasSuffix(r.URL.Path, "Sessions") && !login {
				w.Header().Set("X-Auth-Token", "token-of-the-session")
				w.WriteHeader(http.StatusCreated)
				return
			}
			w.WriteHeader(status)
			basic := base64.StdEncoding.EncodeToString([]byte("admin:" + canary))
			must(t, json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"code": canary, "message": canary, "@Message.ExtendedInfo": []map[string]any{
				{"MessageId": canary, "Message": canary + " " + url.QueryEscape(canary) + " " + basic + " token-of-the-session", "MessageArgs": []string{canary}}, {"MessageId": canary, "MessageArgs": []string{canary}},
			}}}))
		})
		b := bmctest.Open(t, bmctest.Pool(t, bmc.Config{}), bmc.Target{BaseURL: base, SystemPath: "/redfish/v1/Systems/1", Credentials: bmc.NewCredentials("admin", canary)})
		err := everything(t, b)
		if err == nil || leaks(err.Error()) || !login && strings.Contains(err.Error(), "token-") {
			t.Errorf("%d: %v", status, err)
		}
	}
}

func TestForeignErrorsStayInside(t *testing.T) {
	for _, base := range []string{nobody(t), "https://bmc..invalid", server(t, http.NotFound)} {
		_, err := bmctest.Open(t, bmctest.Pool(t, bmc.Config{}), bmc.Target{BaseURL: base, Credentials: bmc.NewCredentials("u", "p")}).Check(t.Context())
		for next := []error{err}; len(next) > 0; next = next[1:] {
			name := fmt.Sprintf("%T", next[0])
			if name != "*bmc.Error" && name != "*errors.errorString" {
				t.Errorf("%s: an error of type %s comes out", base, name)
			}
			if many, ok := next[0].(interface{ Unwrap() []error }); ok {
				next = append(next, many.Unwrap()...)
			}
			if one := errors.Unwrap(next[0]); one != nil {
				next = append(next, one)
			}
		}
	}
}
