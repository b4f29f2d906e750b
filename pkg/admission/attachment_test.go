package admission_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/admission"
)

func attachment(mode v1alpha1.SwitchPortMode, vlans ...string) *v1alpha1.HostNetworkAttachment {
	return &v1alpha1.HostNetworkAttachment{Spec: v1alpha1.HostNetworkAttachmentSpec{Mode: mode, NativeVLAN: 1, AllowedVLANs: vlans}}
}

func TestValidateAttachment(t *testing.T) {
	t.Parallel()
	refuse := func(detail string) *finding { return &finding{invalid, "spec.allowedVLANs[0]", detail} }
	tests := map[string]struct {
		attachment *v1alpha1.HostNetworkAttachment
		want       *finding
	}{
		"access":                {attachment: attachment("access")},
		"access with VLANs":     {attachment: attachment("access", "100"), want: &finding{forbidden, "spec.allowedVLANs", "allowedVLANs cannot be specified for access mode"}},
		"trunk with VLANs":      {attachment: attachment("trunk", "1", "4094", "100-199", "1-4094")},
		"a VLAN of 0":           {attachment: attachment("hybrid", "0"), want: refuse(`allowedVLANs[0] "0": it must be a number from 1 to 4094`)},
		"a VLAN of 4095":        {attachment: attachment("hybrid", "4095"), want: refuse(`allowedVLANs[0] "4095": it must be a number`)},
		"no VLAN":               {attachment: attachment("hybrid", "ten"), want: refuse(`allowedVLANs[0] "ten": it must be a number`)},
		"a range from 0":        {attachment: attachment("trunk", "0-9"), want: refuse(`allowedVLANs[0] "0-9": both ends must be numbers from 1 to 4094`)},
		"a range to 4095":       {attachment: attachment("trunk", "9-4095"), want: refuse(`allowedVLANs[0] "9-4095": both ends must be numbers`)},
		"a range of one":        {attachment: attachment("trunk", "9-9"), want: refuse(`allowedVLANs[0] "9-9": the first number must be less than the second`)},
		"a range the other way": {attachment: attachment("trunk", "9-5"), want: refuse(`allowedVLANs[0] "9-5": the first number must be less`)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, admission.ValidateAttachment(tt.attachment), tt.want)
		})
	}
}

func TestAttachmentInUse(t *testing.T) {
	t.Parallel()
	ref := func(namespace, name string) v1alpha1.HostNetworkAttachmentRef {
		return v1alpha1.HostNetworkAttachmentRef{Namespace: namespace, Name: name}
	}
	hosts := []v1alpha1.BareMetalHost{
		*newHost(named("a"), nics(
			v1alpha1.NetworkInterface{Name: "eth0", HostNetworkAttachment: ref("", "storage")},
			v1alpha1.NetworkInterface{Name: "eth1", HostNetworkAttachment: ref("other", "storage")},
			v1alpha1.NetworkInterface{Name: "eth2"},
		)),
		*newHost(named("b"), nics(v1alpha1.NetworkInterface{MACAddress: "00:00:5e:00:53:02", HostNetworkAttachment: ref("lab", "storage")})),
		*newHost(named("c")),
	}
	if diff := cmp.Diff([]string{"lab/storage", "other/storage"}, admission.AttachmentKeys(&hosts[0])); diff != "" {
		t.Errorf("keys (-want +got)\n%s", diff)
	}
	users := admission.AttachmentUsers("lab", "storage", hosts)
	if diff := cmp.Diff([]string{"lab/a[eth0]", "lab/b[00:00:5e:00:53:02]"}, users); diff != "" {
		t.Errorf("users (-want +got)\n%s", diff)
	}

	before, after, bad := attachment("trunk", "1"), attachment("trunk", "2"), attachment("trunk", "0")
	check(t, admission.ValidateAttachmentUpdate(before, after, nil), nil)
	check(t, admission.ValidateAttachmentUpdate(before, before.DeepCopy(), users), nil)
	check(t, admission.ValidateAttachmentUpdate(bad, bad.DeepCopy(), users), nil)
	check(t, admission.ValidateAttachmentUpdate(before, bad, users), &finding{invalid, "spec.allowedVLANs[0]", "must be a number"})
	check(t, admission.ValidateAttachmentUpdate(before, after, users), &finding{
		forbidden, "spec",
		"HostNetworkAttachment spec is immutable while referenced by BMH interfaces: lab/a[eth0], lab/b[00:00:5e:00:53:02]",
	})

	errs, warnings := admission.ValidateAttachmentDeletion(nil)
	check(t, errs, nil)
	if len(warnings) > 0 {
		t.Errorf("warned of %v", warnings)
	}
	errs, warnings = admission.ValidateAttachmentDeletion(users)
	check(t, errs, &finding{forbidden, "metadata", "cannot delete attachment while referenced by BMH interfaces: lab/a[eth0], "})
	if diff := cmp.Diff([]string{"This attachment is referenced by: lab/a[eth0], lab/b[00:00:5e:00:53:02]"}, warnings); diff != "" {
		t.Errorf("warnings (-want +got)\n%s", diff)
	}
}
