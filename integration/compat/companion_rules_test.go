package compat_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

func TestSubscriptionRules(t *testing.T) {
	k, _ := guarded(t)
	type subscription = v1alpha1.BMCEventSubscription
	with := func(change func(*v1alpha1.BMCEventSubscriptionSpec)) *subscription {
		s := &subscription{Spec: v1alpha1.BMCEventSubscriptionSpec{HostName: "a", Destination: "https://192.0.2.90/"}}
		change(&s.Spec)
		return s
	}
	to := func(url string) *subscription {
		return with(func(s *v1alpha1.BMCEventSubscriptionSpec) { s.Destination = url })
	}
	good := func() *subscription { return to("https://192.0.2.90/events?x=1") }
	try(t, k, map[string]rule{
		"S1 a host": {
			good: good(), bad: with(func(s *v1alpha1.BMCEventSubscriptionSpec) { s.HostName = "" }),
			want: refusal{"spec.hostName", "hostName cannot be empty"},
		},
		"S2 headers of the namespace": {
			good: good(), bad: with(func(s *v1alpha1.BMCEventSubscriptionSpec) { s.HTTPHeadersRef = elsewhere() }),
			want: refusal{"spec.httpHeadersRef.namespace", "httpHeadersRef secret must be in the same namespace as the BMCEventSubscription"},
		},
		"S3 a destination": {good: good(), bad: to(""), want: refusal{"spec.destination", "destination cannot be empty"}},
		"S4 a destination that is a URL": {
			good: good(), bad: to("somewhere"), want: refusal{"spec.destination", "destination is invalid"},
		},
		"S5 a destination with a path": {
			good: good(), bad: to("https://192.0.2.90"), want: refusal{"spec.destination", "hostname-only destination must have a trailing slash"},
		},
	})
	namespace := k.Namespace(t)
	withHeaders := with(func(s *v1alpha1.BMCEventSubscriptionSpec) {
		s.HTTPHeadersRef = &corev1.SecretReference{Name: "h", Namespace: namespace}
	})
	o := store(t, k, namespace, withHeaders)
	o.Finalizers = []string{"bmceventsubscription.metal3.io"}
	if err := k.Client.Update(t.Context(), o); err != nil {
		t.Errorf("S6 a finalizer on a subscription with headers: %v", err)
	}
	o.Finalizers = nil
	if err := k.Client.Update(t.Context(), o); err != nil {
		t.Error(err)
	}
	tryUpdate(t, k, map[string]update[*subscription]{"S6 nothing changes": {
		stored: good(), good: func(s *subscription) { s.Labels = map[string]string{"a": "b"} }, bad: func(s *subscription) { s.Spec.Context = "x" },
		want: refusal{"spec", "subscriptions cannot be updated, please recreate it"},
	}})
}

func TestURLRulesOfCompanions(t *testing.T) {
	k, _ := guarded(t)
	dataImage := func(url string) *v1alpha1.DataImage {
		return &v1alpha1.DataImage{Spec: v1alpha1.DataImageSpec{URL: url}}
	}
	components := func(url string) *v1alpha1.HostFirmwareComponents {
		return &v1alpha1.HostFirmwareComponents{Spec: v1alpha1.HostFirmwareComponentsSpec{Updates: []v1alpha1.FirmwareUpdate{{Component: "bios", URL: url}}}}
	}
	imageWant := refusal{"spec.url", `URL "nfs://192.0.2.80/data.iso" is invalid: invalid scheme in URL, "nfs" not allowed`}
	updateWant := refusal{"spec.updates[0].url", `invalid URL "bios.bin" in FirmwareUpdate in component "bios"`}
	try(t, k, map[string]rule{
		"D1 a data image can be fetched": {good: dataImage("https://192.0.2.80/data.iso"), bad: dataImage("nfs://192.0.2.80/data.iso"), want: imageWant},
		"F1 an update can be fetched":    {good: components("http://192.0.2.80/bios.bin"), bad: components("bios.bin"), want: updateWant},
	})
	tryUpdate(t, k, map[string]update[*v1alpha1.DataImage]{"D1 a data image changes": {
		stored: dataImage("https://192.0.2.80/data.iso"), want: imageWant,
		good: func(i *v1alpha1.DataImage) { i.Spec.URL = "http://192.0.2.80/other.iso" }, bad: func(i *v1alpha1.DataImage) { i.Spec.URL = "nfs://192.0.2.80/data.iso" },
	}})
	tryUpdate(t, k, map[string]update[*v1alpha1.HostFirmwareComponents]{"F1 an update changes": {
		stored: components("http://192.0.2.80/bios.bin"), want: updateWant,
		good: func(c *v1alpha1.HostFirmwareComponents) { c.Spec.Updates = []v1alpha1.FirmwareUpdate{} }, bad: func(c *v1alpha1.HostFirmwareComponents) { c.Spec.Updates[0].URL = "bios.bin" },
	}})
}

func TestClaimRules(t *testing.T) {
	k, _ := guarded(t)
	type claim = v1alpha1.HostClaim
	with := func(change func(*claim)) *claim {
		c := &claim{}
		change(c)
		return c
	}
	labels := func(key, value string) *claim {
		return with(func(c *claim) { c.Spec.HostSelector.MatchLabels = map[string]string{key: value} })
	}
	expression := func(key string, operator selection.Operator, values ...string) *claim {
		if values == nil {
			values = []string{}
		}
		return with(func(c *claim) {
			c.Spec.HostSelector.MatchExpressions = []v1alpha1.HostSelectorRequirement{{Key: key, Operator: operator, Values: values}}
		})
	}
	const values = "spec.hostSelector.matchExpressions[0].values"
	try(t, k, map[string]rule{
		"C1 a label's key":           {good: labels("example.com/rack", "7"), bad: labels("no blanks", "7"), want: refusal{"spec.hostSelector.matchLabels[no blanks]", "no blanks=7: name part must consist of"}},
		"C1 a label's value":         {good: labels("rack", ""), bad: labels("rack", "no blanks"), want: refusal{"spec.hostSelector.matchLabels[rack]", "rack=no blanks: a valid label must be"}},
		"C2 an expression's key":     {good: expression("rack", "exists"), bad: expression("no blanks", "exists"), want: refusal{"spec.hostSelector.matchExpressions[0].key", "matchExpr 1: name part must consist of"}},
		"C3 an operator":             {good: expression("rack", "!"), bad: expression("rack", "In", "7"), want: refusal{"spec.hostSelector.matchExpressions[0].operator", "matchExpr 1: invalid operation In in match expression on label key rack"}},
		"C4 = takes one value":       {good: expression("rack", "=", "7"), bad: expression("rack", "=", "7", "8"), want: refusal{values, "matchExpr 1: operator = takes exactly one value"}},
		"C4 == takes one value":      {good: expression("rack", "==", "7"), bad: expression("rack", "=="), want: refusal{values, "matchExpr 1: operator == takes exactly one value"}},
		"C4 != takes one value":      {good: expression("rack", "!=", "7"), bad: expression("rack", "!=", strings.Repeat("x", 64)), want: refusal{values, "matchExpr 1: must be no more than 63"}},
		"C5 in takes values":         {good: expression("rack", "in", "7", "8"), bad: expression("rack", "in"), want: refusal{values, "matchExpr 1: operator in takes at least one value"}},
		"C5 notin takes good values": {good: expression("rack", "notin", "7"), bad: expression("rack", "notin", "7", "no blanks"), want: refusal{values, "matchExpr 1: a valid label must be"}},
		"C6 exists takes no value":   {good: expression("rack", "exists"), bad: expression("rack", "exists", "7"), want: refusal{values, "matchExpr 1: operator exists takes no values"}},
		"C6 ! takes no value":        {good: expression("rack", "!"), bad: expression("rack", "!", "7"), want: refusal{values, "matchExpr 1: operator ! takes no values"}},
		"C7 a reboot": {
			good: with(func(c *claim) { c.Annotations = map[string]string{"reboot.metal3.io": `{"mode":"soft"}`} }),
			bad:  with(func(c *claim) { c.Annotations = map[string]string{"reboot.metal3.io": "now"} }),
			want: refusal{"metadata.annotations[reboot.metal3.io]", "failed to unmarshal the data from the reboot.metal3.io annotation"},
		},
		"C8 an image": {
			good: with(func(c *claim) { c.Spec.Image = &v1alpha1.Image{URL: "http://192.0.2.80/os", Checksum: sum} }),
			bad:  with(func(c *claim) { c.Spec.Image = &v1alpha1.Image{URL: "http://192.0.2.80/os"} }),
			want: refusal{"spec.image.checksum", "checksum is required for normal images"},
		},
		"C9 Secrets of the namespace": {
			good: with(func(c *claim) { c.Spec.UserData = here() }), bad: with(func(c *claim) { c.Spec.UserData = elsewhere() }),
			want: refusal{"spec.userData.namespace", "userData: cross-namespace Secret references are not allowed"},
		},
	})
	tryUpdate(t, k, map[string]update[*claim]{"C1 a selector changes": {
		stored: labels("rack", "7"), want: refusal{"spec.hostSelector.matchLabels[rack]", "a valid label must be"},
		good: func(c *claim) { c.Spec.HostSelector.MatchLabels["rack"] = "8" }, bad: func(c *claim) { c.Spec.HostSelector.MatchLabels["rack"] = "no blanks" },
	}})
}

func TestAttachmentRules(t *testing.T) {
	k, _ := guarded(t)
	access := &v1alpha1.HostNetworkAttachment{Spec: v1alpha1.HostNetworkAttachmentSpec{Mode: "access", NativeVLAN: 1, AllowedVLANs: []string{"100"}}}
	trunk := func(vlans ...string) *v1alpha1.HostNetworkAttachment {
		return &v1alpha1.HostNetworkAttachment{Spec: v1alpha1.HostNetworkAttachmentSpec{Mode: "trunk", NativeVLAN: 1, AllowedVLANs: vlans}}
	}
	const first = "spec.allowedVLANs[0]"
	try(t, k, map[string]rule{
		"N1 access has no tagged VLANs": {good: trunk("100"), bad: access, want: refusal{"spec.allowedVLANs", "allowedVLANs cannot be specified for access mode"}},
		"N2 a VLAN has a number":        {good: trunk("1", "4094"), bad: trunk("4095"), want: refusal{first, `allowedVLANs[0] "4095"`}},
		"N2 a range has two":            {good: trunk("1-4094"), bad: trunk("0-9"), want: refusal{first, `allowedVLANs[0] "0-9"`}},
		"N2 a range goes upwards":       {good: trunk("5-9"), bad: trunk("9-5"), want: refusal{first, `allowedVLANs[0] "9-5"`}},
	})
	tryUpdate(t, k, map[string]update[*v1alpha1.HostNetworkAttachment]{"N2 VLANs change": {
		stored: trunk("100"), want: refusal{first, `allowedVLANs[0] "0"`},
		good: func(a *v1alpha1.HostNetworkAttachment) { a.Spec.AllowedVLANs = []string{"200"} }, bad: func(a *v1alpha1.HostNetworkAttachment) { a.Spec.AllowedVLANs = []string{"0"} },
	}})
}

func TestSwitchRules(t *testing.T) {
	k, _ := guarded(t)
	with := func(credentials *corev1.SecretReference) *v1alpha1.BareMetalSwitch {
		return &v1alpha1.BareMetalSwitch{Spec: v1alpha1.BareMetalSwitchSpec{
			Address: "192.0.2.20", MACAddress: "00:00:5e:00:53:20", DeviceType: "netmiko_cisco_ios", Credentials: credentials,
		}}
	}
	try(t, k, map[string]rule{"W1 a login of the namespace": {
		good: with(here()), bad: with(elsewhere()), want: refusal{"spec.credentials.namespace", "credentials: cross-namespace Secret references are not allowed"},
	}})
}
