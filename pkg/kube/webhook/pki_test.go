package webhook

import (
	"crypto/x509"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var birth = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func names() []string { return []string{"webhook-service.metalbus-system.svc", "127.0.0.1", "::1"} }

func mustRenew(t *testing.T, k keys, names []string, now time.Time) keys {
	t.Helper()
	next, err := renewed(k, names, now)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// trusted fails the test unless whoever trusts the bundle trusts the
// certificate too, at now and under every name.
func trusted(t *testing.T, bundle []*x509.Certificate, k keys, names []string, now time.Time) {
	t.Helper()
	roots := x509.NewCertPool()
	for _, c := range bundle {
		roots.AddCert(c)
	}
	for _, name := range names {
		if _, err := k.serving.Leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, DNSName: name}); err != nil {
			t.Fatalf("on %s, as %s: %v", now.Format(time.DateTime), name, err)
		}
	}
}

// Six years of a webhook, looked at once a week: the certificate is always
// valid, and it was signed by an authority that the API has known for a while.
func TestRenewalsOverlap(t *testing.T) {
	t.Parallel()
	k := mustRenew(t, keys{}, names(), birth)
	before := k.bundle
	certificates, authorities := 1, 1
	for now := birth; now.Before(birth.Add(6 * 365 * day)); now = now.Add(7 * day) {
		for range 2 { // the second look comes when the first has settled
			next := mustRenew(t, k, names(), now)
			if !next.serving.Leaf.Equal(k.serving.Leaf) {
				certificates++
			}
			if !next.bundle[0].Equal(k.bundle[0]) {
				authorities++
			}
			k = next
			trusted(t, before, k, names(), now)
			trusted(t, k.bundle, k, names(), now)
			before = k.bundle
			now = now.Add(settle)
		}
		if len(k.bundle) > 2 {
			t.Fatalf("%d authorities at once", len(k.bundle))
		}
	}
	if authorities != 4 || certificates < 30 || certificates > 45 {
		t.Errorf("%d authorities and %d certificates in six years", authorities, certificates)
	}
}

func TestRenewed(t *testing.T) {
	t.Parallel()
	fresh := mustRenew(t, keys{}, names(), birth)
	for name, tt := range map[string]struct {
		names              []string
		after              time.Duration
		authority, serving bool // is it another one?
	}{
		"nothing has changed":                   {names: names(), after: day},
		"the certificate is about to run out":   {names: names(), after: servingLife - servingRenew + time.Minute, serving: true},
		"the certificate has run out":           {names: names(), after: servingLife + day, serving: true},
		"the Service has another name":          {names: []string{"other.metalbus-system.svc"}, after: day, serving: true},
		"the clock went back before its making": {names: names(), after: -2 * time.Hour, serving: true},
		"all has run out":                       {names: names(), after: authorityLife + day, authority: true, serving: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := birth.Add(tt.after)
			got := mustRenew(t, fresh, tt.names, now)
			if other := !got.bundle[0].Equal(fresh.bundle[0]); other != tt.authority {
				t.Errorf("another authority: %t", other)
			}
			if other := !got.serving.Leaf.Equal(fresh.serving.Leaf); other != tt.serving {
				t.Errorf("another certificate: %t", other)
			}
			if tt.after > 0 {
				trusted(t, got.bundle, got, tt.names, now)
			}
			if got.same(fresh) == (tt.authority || tt.serving) {
				t.Error("same says otherwise")
			}
		})
	}
}

// A new authority signs nothing until the API has had time to hear of it.
func TestNewAuthorityWaits(t *testing.T) {
	t.Parallel()
	turn := birth.Add(authorityLife - authorityRenew)
	old := mustRenew(t, mustRenew(t, keys{}, names(), birth), names(), turn.Add(-time.Minute))
	begun := mustRenew(t, old, names(), turn.Add(time.Minute))
	if len(begun.bundle) != 2 || !begun.serving.Leaf.Equal(old.serving.Leaf) {
		t.Fatalf("%d authorities; the certificate must be the old one still", len(begun.bundle))
	}
	if waiting := mustRenew(t, begun, names(), turn.Add(settle)); !waiting.same(begun) {
		t.Error("it did not wait")
	}
	done := mustRenew(t, begun, names(), turn.Add(time.Minute+settle))
	if err := done.serving.Leaf.CheckSignatureFrom(done.bundle[0]); err != nil {
		t.Errorf("not signed by the new authority: %v", err)
	}
}

func TestKeysComeBackFromTheSecret(t *testing.T) {
	t.Parallel()
	k := mustRenew(t, keys{}, names(), birth)
	k = mustRenew(t, k, names(), birth.Add(authorityLife-authorityRenew+day))
	data, err := k.encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := parseKeys(data)
	if err != nil {
		t.Fatal(err)
	}
	if !again.same(k) {
		t.Error("they are others")
	}
	trusted(t, again.bundle, again, names(), birth.Add(authorityLife-authorityRenew+day))
}

func TestUselessKeysAreTold(t *testing.T) {
	t.Parallel()
	secrets := make([]map[string][]byte, 2)
	for i := range secrets {
		data, err := mustRenew(t, keys{}, names(), birth).encode()
		if err != nil {
			t.Fatal(err)
		}
		secrets[i] = data
	}
	for _, key := range []string{certificateKey, privateKey, authorityKey, authoritySecret} {
		for what, value := range map[string][]byte{"missing": nil, "of another one": secrets[1][key], "rubbish": []byte("rubbish")} {
			wrong := maps.Clone(secrets[0])
			wrong[key] = value
			_, err := parseKeys(wrong)
			if err == nil || strings.Contains(err.Error(), "rubbish") || !strings.Contains(err.Error(), key[:3]) {
				t.Errorf("%s is %s: %v", key, what, err)
			}
		}
	}
}

func TestNamesOfTheWebhook(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		cfg  Config
		want []string
	}{
		"by Service":     {Config{Service: "s", Namespace: "n"}, []string{"s.n.svc", "s.n.svc.cluster.local"}},
		"by address":     {Config{Service: "s", Namespace: "n", URL: "https://127.0.0.1:9443"}, []string{"127.0.0.1"}},
		"by IPv6":        {Config{URL: "https://[::1]:9443/"}, []string{"::1"}},
		"by name of DNS": {Config{URL: "https://laptop.example"}, []string{"laptop.example"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, tt.cfg.hosts()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
