package admission_test

import (
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/admission"
)

// finding is what a rule must say.
type finding struct {
	kind   field.ErrorType
	field  string
	detail string // a part of it
}

// check wants errs to be one finding, or none if want is nil.
func check(t *testing.T, errs field.ErrorList, want *finding) {
	t.Helper()
	if want == nil {
		if len(errs) > 0 {
			t.Errorf("refused: %v", errs.ToAggregate())
		}
		return
	}
	if len(errs) != 1 {
		t.Fatalf("want one finding, got %d: %v", len(errs), errs.ToAggregate())
	}
	got := errs[0]
	if got.Type != want.kind || got.Field != want.field || !strings.Contains(got.Detail, want.detail) {
		t.Errorf("got  %s %s: %s\nwant %s %s: …%s…", got.Type, got.Field, got.Detail, want.kind, want.field, want.detail)
	}
}

type host = v1alpha1.BareMetalHost

// newHost is a host in which nothing is wrong, with changes.
func newHost(changes ...func(*host)) *host {
	h := &host{
		ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "host-a"},
		Spec: v1alpha1.BareMetalHostSpec{
			Online:         true,
			BootMACAddress: "00:00:5e:00:53:01",
			BMC: v1alpha1.BMCDetails{
				Address: "redfish-virtualmedia+https://192.0.2.10/redfish/v1/Systems/1", CredentialsName: "host-a-bmc",
			},
		},
	}
	for _, change := range changes {
		change(h)
	}
	return h
}

// annotated puts annotations on a host: key, value, key, value.
func annotated(pairs ...string) func(*host) {
	return func(h *host) {
		added := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			added[pairs[i]] = pairs[i+1]
		}
		if h.Annotations == nil {
			h.Annotations = map[string]string{}
		}
		maps.Copy(h.Annotations, added)
	}
}

func bmc(address string) func(*host)         { return func(h *host) { h.Spec.BMC.Address = address } }
func bootMAC(mac string) func(*host)         { return func(h *host) { h.Spec.BootMACAddress = mac } }
func named(name string) func(*host)          { return func(h *host) { h.Name = name } }
func raid(r v1alpha1.RAIDConfig) func(*host) { return func(h *host) { h.Spec.RAID = &r } }
func image(i v1alpha1.Image) func(*host)     { return func(h *host) { h.Spec.Image = &i } }
func hints(h v1alpha1.RootDeviceHints) func(*host) {
	return func(b *host) { b.Spec.RootDeviceHints = &h }
}

func inspection(m v1alpha1.InspectionMode) func(*host) {
	return func(h *host) { h.Spec.InspectionMode = m }
}

func nics(n ...v1alpha1.NetworkInterface) func(*host) {
	return func(h *host) { h.Spec.NetworkInterfaces = n }
}

func secret(namespace string) *corev1.SecretReference {
	return &corev1.SecretReference{Name: "admin-token", Namespace: namespace}
}

const (
	invalid   = field.ErrorTypeInvalid
	forbidden = field.ErrorTypeForbidden
	required  = field.ErrorTypeRequired
)

// Each rule with an object that it takes and one that it refuses.
func TestValidateHost(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		good, bad *host
		want      finding
	}{
		"the address must parse": {
			good: newHost(bmc("ipmi://192.0.2.10")),
			bad:  newHost(bmc("redfish://bad_host/x")),
			want: finding{invalid, "spec.bmc.address", "failed to parse BMC address information: BMC address hostname/IP : [bad_host] is invalid"},
		},
		"the type of BMC must be known": {
			good: newHost(bmc("ilo5-redfish://192.0.2.10")),
			bad:  newHost(bmc("ilo4://192.0.2.10")),
			want: finding{invalid, "spec.bmc.address", "Unknown BMC type 'ilo4' for address ilo4://192.0.2.10"},
		},
		"the path must be that of a system": {
			good: newHost(bmc("redfish://192.0.2.10/redfish/v1/Systems/1/")),
			bad:  newHost(bmc("redfish://192.0.2.10/redfish/v1/Managers/1")),
			want: finding{invalid, "spec.bmc.address", "use a Systems path"},
		},
		"firmware is gone": {
			good: newHost(),
			bad:  newHost(func(h *host) { h.Spec.Firmware = &v1alpha1.FirmwareConfig{} }),
			want: finding{forbidden, "spec.firmware", "the Firmware field is no longer supported, use HostFirmwareSettings resource instead"},
		},
		"userData of another namespace": {
			good: newHost(func(h *host) { h.Spec.UserData = secret("lab") }),
			bad:  newHost(func(h *host) { h.Spec.UserData = secret("kube-system") }),
			want: finding{forbidden, "spec.userData.namespace", "userData: cross-namespace Secret references are not allowed"},
		},
		"networkData of another namespace": {
			good: newHost(func(h *host) { h.Spec.NetworkData = secret("") }),
			bad:  newHost(func(h *host) { h.Spec.NetworkData = secret("kube-system") }),
			want: finding{forbidden, "spec.networkData.namespace", "networkData: cross-namespace Secret references are not allowed"},
		},
		"metaData of another namespace": {
			good: newHost(func(h *host) { h.Spec.MetaData = secret("") }),
			bad:  newHost(func(h *host) { h.Spec.MetaData = secret("kube-system") }),
			want: finding{forbidden, "spec.metaData.namespace", "metaData: cross-namespace Secret references are not allowed"},
		},
		"hardware RAID needs a driver that can": {
			good: newHost(raid(v1alpha1.RAIDConfig{HardwareRAIDVolumes: []v1alpha1.HardwareRAIDVolume{{Level: "1"}}})),
			bad:  newHost(bmc("ipmi://192.0.2.10"), raid(v1alpha1.RAIDConfig{HardwareRAIDVolumes: []v1alpha1.HardwareRAIDVolume{{Level: "1"}}})),
			want: finding{forbidden, "spec.raid.hardwareRAIDVolumes", "BMC driver ipmi does not support configuring RAID"},
		},
		"a driver that asks for the MAC address": {
			good: newHost(bmc("libvirt://192.0.2.10:6230/")),
			bad:  newHost(bmc("libvirt://192.0.2.10:6230/"), bootMAC("")),
			want: finding{required, "spec.bootMACAddress", "BMC driver libvirt requires a BootMACAddress value"},
		},
		"no inspection, no MAC address, by field": {
			good: newHost(bootMAC("")),
			bad:  newHost(bootMAC(""), inspection("disabled")),
			want: finding{required, "spec.bootMACAddress", "BMC driver redfish-virtualmedia+https requires a BootMACAddress value"},
		},
		"no inspection, no MAC address, by annotation": {
			good: newHost(annotated("inspect.metal3.io", "disabled")),
			bad:  newHost(bootMAC(""), annotated("inspect.metal3.io", "disabled")),
			want: finding{required, "spec.bootMACAddress", "BMC driver redfish-virtualmedia+https requires a BootMACAddress value"},
		},
		"the MAC address must be one": {
			good: newHost(bootMAC("00:00:5E:00:53:0A")),
			bad:  newHost(bootMAC("00:00:5e:00:53:01:02")),
			want: finding{invalid, "spec.bootMACAddress", "address 00:00:5e:00:53:01:02: invalid MAC address"},
		},
		"secure boot needs a driver that can": {
			good: newHost(func(h *host) { h.Spec.BootMode = v1alpha1.UEFISecureBoot }),
			bad:  newHost(bmc("ipmi://192.0.2.10"), func(h *host) { h.Spec.BootMode = v1alpha1.UEFISecureBoot }),
			want: finding{forbidden, "spec.bootMode", "BMC driver ipmi does not support secure boot"},
		},
		"fast inspection needs a driver that can": {
			good: newHost(inspection("fast")),
			bad:  newHost(bmc("ipmi://192.0.2.10"), inspection("fast")),
			want: finding{forbidden, "spec.inspectionMode", "BMC driver ipmi does not support fast (out-of-band) inspection"},
		},
		"a host without BMC is not asked for what drivers need": {
			good: newHost(func(h *host) { h.Spec.BMC = v1alpha1.BMCDetails{} }, bootMAC(""), inspection("disabled")),
			bad:  newHost(inspection("sometimes")),
			want: finding{invalid, "spec.inspectionMode", "invalid inspectionMode value: sometimes"},
		},
		"a name that is a UUID": {
			good: newHost(named("f81d4fae-7dec-11d0-a765")),
			bad:  newHost(named("f81d4fae-7dec-11d0-a765-00a0c91e6bf6")),
			want: finding{invalid, "metadata.name", "BareMetalHost resource name cannot be a UUID"},
		},
		"a name that is a UUID without hyphens": {
			good: newHost(named("f81d4fae7dec11d0a76500a0c91e6bf")),
			bad:  newHost(named("f81d4fae7dec11d0a76500a0c91e6bf6")),
			want: finding{invalid, "metadata.name", "BareMetalHost resource name cannot be a UUID"},
		},
		"a name with a tilde": {
			good: newHost(named("Host_a.1-b")),
			bad:  newHost(named("lab~host-a")),
			want: finding{invalid, "metadata.name", "BareMetalHost resource name cannot contain characters other than [A-Za-z0-9._-]"},
		},
		"a name that is too long for a node": {
			good: newHost(named(strings.Repeat("a", 251))),
			bad:  newHost(named(strings.Repeat("a", 252))),
			want: finding{field.ErrorTypeTooLong, "metadata.name", "251"},
		},
		"power off disabled and wanted": {
			good: newHost(func(h *host) { h.Spec.DisablePowerOff = true }),
			bad:  newHost(func(h *host) { h.Spec.DisablePowerOff = true; h.Spec.Online = false }),
			want: finding{invalid, "spec.disablePowerOff", "node can't simultaneously have online set to false and have power off disabled"},
		},
		"an interface that chooses nothing": {
			good: newHost(nics(v1alpha1.NetworkInterface{Name: "eth0"}, v1alpha1.NetworkInterface{MACAddress: "00:00:5e:00:53:02"})),
			bad:  newHost(nics(v1alpha1.NetworkInterface{})),
			want: finding{required, "spec.networkInterfaces[0]", "networkInterfaces[0]: must specify either name or macAddress"},
		},
		"an interface that chooses twice": {
			good: newHost(nics(v1alpha1.NetworkInterface{Name: "eth0"})),
			bad:  newHost(nics(v1alpha1.NetworkInterface{Name: "eth0", MACAddress: "00:00:5e:00:53:02"})),
			want: finding{forbidden, "spec.networkInterfaces[0]", "networkInterfaces[0]: name and macAddress are mutually exclusive"},
		},
		"two interfaces that choose the same": {
			good: newHost(nics(v1alpha1.NetworkInterface{MACAddress: "00:00:5e:00:53:0a"}, v1alpha1.NetworkInterface{MACAddress: "00:00:5e:00:53:0b"})),
			bad:  newHost(nics(v1alpha1.NetworkInterface{MACAddress: "00:00:5e:00:53:0a"}, v1alpha1.NetworkInterface{MACAddress: "00:00:5E:00:53:0A"})),
			want: finding{field.ErrorTypeDuplicate, "spec.networkInterfaces[1]", `networkInterfaces[1]: duplicate interface selector for "00:00:5e:00:53:0a"`},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, admission.ValidateHost(tt.good), nil)
			check(t, admission.ValidateHost(tt.bad), &tt.want)
		})
	}
}

// All that is wrong is said at once, and a fault of the address once.
func TestValidateHostReportsEverything(t *testing.T) {
	t.Parallel()
	h := newHost(bmc("redfish://bad_host"), named("lab~a"), image(v1alpha1.Image{URL: "file:///x"}), func(h *host) {
		h.Spec.UserData = secret("kube-system")
	})
	var fields []string
	for _, err := range admission.ValidateHost(h) {
		fields = append(fields, err.Field)
	}
	want := "metadata.name spec.bmc.address spec.userData.namespace spec.image.url spec.image.checksum"
	if got := strings.Join(fields, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestValidateHostUpdate(t *testing.T) {
	t.Parallel()
	in := func(state v1alpha1.ProvisioningState) func(*host) {
		return func(h *host) { h.Status.Provisioning.State = state }
	}
	status := func(s v1alpha1.OperationalStatus) func(*host) {
		return func(h *host) { h.Status.OperationalStatus = s }
	}
	external := func(h *host) { h.Spec.ExternallyProvisioned = true }
	other := bmc("ipmi://192.0.2.11")
	noMAC := bootMAC("")
	const (
		address = "BMC address can not be changed if the BMH is not in the Registering state, or if the BMH is not detached"
		mac     = "bootMACAddress can not be changed once it is set"
		extern  = "externallyProvisioned can only be enabled when in Available state, currently in "
	)
	tests := map[string]struct {
		before, after *host
		want          *finding
	}{
		"nothing changed":                        {before: newHost(), after: newHost()},
		"another address":                        {before: newHost(in("available")), after: newHost(in("available"), other), want: &finding{forbidden, "spec.bmc.address", address}},
		"no address any more":                    {before: newHost(in("available")), after: newHost(in("available"), bmc("")), want: &finding{forbidden, "spec.bmc.address", address}},
		"a first address":                        {before: newHost(in("unmanaged"), bmc("")), after: newHost(in("unmanaged"))},
		"another address while registering":      {before: newHost(in("registering")), after: newHost(in("registering"), other)},
		"another address on a detached host":     {before: newHost(in("provisioned"), status("detached")), after: newHost(in("provisioned"), status("detached"), other)},
		"another MAC address":                    {before: newHost(), after: newHost(bootMAC("00:00:5e:00:53:02")), want: &finding{forbidden, "spec.bootMACAddress", mac}},
		"no MAC address any more":                {before: newHost(), after: newHost(noMAC), want: &finding{forbidden, "spec.bootMACAddress", mac}},
		"the MAC address in upper case":          {before: newHost(), after: newHost(bootMAC("00:00:5E:00:53:01"))},
		"a first MAC address":                    {before: newHost(noMAC), after: newHost()},
		"externally provisioned while available": {before: newHost(in("available")), after: newHost(in("available"), external)},
		"externally provisioned while provisioned": {
			before: newHost(in("provisioned")), after: newHost(in("provisioned"), external),
			want: &finding{forbidden, "spec.externallyProvisioned", extern + "provisioned"},
		},
		"no longer externally provisioned": {before: newHost(in("externally provisioned"), external), after: newHost(in("externally provisioned"))},
		"a Secret of another namespace": {
			before: newHost(), after: newHost(func(h *host) { h.Spec.UserData = secret("kube-system") }),
			want: &finding{forbidden, "spec.userData.namespace", "userData: cross-namespace Secret references are not allowed"},
		},
		"a new annotation that is wrong": {
			before: newHost(), after: newHost(annotated("inspect.metal3.io", "please")),
			want: &finding{field.ErrorTypeNotSupported, "metadata.annotations[inspect.metal3.io]", `allowed are "disabled" or ""`},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, admission.ValidateHostUpdate(tt.before, tt.after), tt.want)
		})
	}
}

// A host that was stored before a rule was there can still lose its finalizer,
// but not get another spec before its faults are mended.
func TestValidateHostUpdateLetsOldFaultsBe(t *testing.T) {
	t.Parallel()
	bad := func(h *host) { h.Spec.UserData = secret("kube-system") }
	before := newHost(bad, named("lab~a"), func(h *host) { h.Finalizers = []string{v1alpha1.BareMetalHostFinalizer} })
	if len(admission.ValidateHost(before)) != 2 {
		t.Fatal("the host has other faults than the test is about")
	}
	after := before.DeepCopy()
	after.Finalizers = nil
	check(t, admission.ValidateHostUpdate(before, after), nil)

	annotated("reboot.metal3.io", `{"mode":"now"}`)(after)
	check(t, admission.ValidateHostUpdate(before, after), &finding{invalid, "metadata.annotations[reboot.metal3.io]", "invalid mode"})

	after.Annotations = nil
	after.Spec.Online = false
	if got := len(admission.ValidateHostUpdate(before, after)); got != 2 {
		t.Errorf("with another spec: %d findings, want the 2 old ones", got)
	}
}

func TestValidateHostDeletion(t *testing.T) {
	t.Parallel()
	used := func(h *host) {
		h.Spec.ConsumerRef = &corev1.ObjectReference{Kind: "Metal3Machine", Namespace: "lab", Name: "m-1"}
	}
	tests := map[string]struct {
		host *host
		want *finding
	}{
		"a free host":                    {host: newHost()},
		"a used host":                    {host: newHost(used), want: &finding{forbidden, "spec.consumerRef", "the host is used by Metal3Machine lab/m-1"}},
		"a used host that may":           {host: newHost(used, annotated(v1alpha1.AllowDeletionAnnotation, ""))},
		"a used host that was moved off": {host: newHost(used, annotated(v1alpha1.DeleteForMoveAnnotation, ""))},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, admission.ValidateHostDeletion(tt.host), tt.want)
		})
	}
}
