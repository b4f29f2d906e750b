package projector

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

var (
	noon    = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	earlier = noon.Add(-time.Hour)
)

func object(change ...func(*v1alpha1.BareMetalHost)) *v1alpha1.BareMetalHost {
	o := &v1alpha1.BareMetalHost{ObjectMeta: metav1.ObjectMeta{
		Namespace: "lab", Name: "host-a", UID: "uid-1", Generation: 3, CreationTimestamp: metav1.NewTime(earlier), Annotations: map[string]string{},
	}}
	o.Spec.Online = true
	o.Spec.BMC = v1alpha1.BMCDetails{Address: "redfish://192.0.2.10", CredentialsName: "host-a-bmc"}
	for _, c := range change {
		c(o)
	}
	return o
}

func with(key, value string) func(*v1alpha1.BareMetalHost) {
	return func(o *v1alpha1.BareMetalHost) { o.Annotations[key] = value }
}

func bootMAC(o *v1alpha1.BareMetalHost) { o.Spec.BootMACAddress = "00:00:5e:00:53:01" }

// knows is a host that the bus knows at revision 7, as the object asked before.
func knows(change ...func(*lifecycle.Host)) lifecycle.Host {
	h := lifecycle.Host{UID: "uid-1", Epoch: "e", Rev: 7}
	h.Intent = intentOf(object(), surroundings{secret: "11", now: earlier})
	for _, c := range change {
		c(&h)
	}
	return h
}

func asked(change func(*event.Intent)) func(*lifecycle.Host) {
	return func(h *lifecycle.Host) { change(&h.Intent) }
}

func TestIntentOf(t *testing.T) {
	foreign := func(o *v1alpha1.BareMetalHost) {
		o.Spec.UserData = &corev1.SecretReference{Namespace: "kube-system", Name: "admin-token"}
	}
	tests := map[string]struct {
		object  *v1alpha1.BareMetalHost
		before  lifecycle.Host
		missing bool
		supply  supply
		fact    string
		want    func(*event.Intent)
	}{
		"a new host is created": {object: object(), fact: event.Created},
		"nothing new is asked":  {object: object(), before: knows()},
		"a status that changed asks nothing": {
			object: object(func(o *v1alpha1.BareMetalHost) { o.Status.PoweredOn = true; o.ResourceVersion = "99" }), before: knows(),
		},
		"another generation that asks nothing": {
			object: object(func(o *v1alpha1.BareMetalHost) { o.Generation = 4 }), before: knows(),
			want: func(i *event.Intent) { i.Generation = 4 },
		},
		"the specification changed": {
			object: object(func(o *v1alpha1.BareMetalHost) { o.Spec.Online = false }), before: knows(), fact: event.Changed,
			want: func(i *event.Intent) { i.Spec.Online = false },
		},
		"the architecture that inspection found is no wish": {
			object: object(func(o *v1alpha1.BareMetalHost) { o.Spec.Architecture = "x86_64" }),
			before: knows(func(h *lifecycle.Host) { h.Inspection.Arch = "x86_64" }),
		},
		"an architecture that a user asks for is one": {
			object: object(func(o *v1alpha1.BareMetalHost) { o.Spec.Architecture = "aarch64" }),
			before: knows(func(h *lifecycle.Host) { h.Inspection.Arch = "x86_64" }), fact: event.Changed,
			want: func(i *event.Intent) { i.Spec.Architecture = "aarch64" },
		},
		"a Secret that is not there is missing from now on": {
			object: object(), missing: true, fact: event.Created,
			want: func(i *event.Intent) { i.Credentials.Version, i.Credentials.MissingSince = "", noon },
		},
		"a Secret that is still not there is missing since then": {
			object: object(), missing: true,
			before: knows(asked(func(i *event.Intent) {
				i.Credentials.Version, i.Credentials.MissingSince = "", earlier
				*i = sealed(*i)
			})),
			want: func(i *event.Intent) { i.Credentials.Version, i.Credentials.MissingSince = "", earlier },
		},
		"a Secret that appeared is a change": {
			object: object(), fact: event.Changed,
			before: knows(asked(func(i *event.Intent) {
				i.Credentials.Version, i.Credentials.MissingSince = "", earlier
				*i = sealed(*i)
			})),
		},
		"a login in the BMC address stays off the bus": {
			object: object(func(o *v1alpha1.BareMetalHost) { o.Spec.BMC.Address = "redfish://admin:s3cret@192.0.2.10" }), before: knows(),
		},
		"a Secret of another namespace is not followed": {
			object: object(foreign), before: knows(), fact: event.Changed,
			want: func(i *event.Intent) {
				i.Invalid = &event.Problem{
					Type: v1alpha1.ProvisioningError, Class: event.ClassUnsupported, Local: true, At: noon,
					Message: "spec.userData.namespace: Forbidden: userData: cross-namespace Secret references are not allowed; put the Secret into namespace lab and leave namespace empty",
					Next:    "Correct the host",
				}
			},
		},
		"a Secret of the host's own namespace is": {
			object: object(func(o *v1alpha1.BareMetalHost) {
				o.Spec.UserData = &corev1.SecretReference{Namespace: "lab", Name: "user-data"}
				o.Spec.MetaData = &corev1.SecretReference{Name: "meta-data"}
			}), before: knows(), fact: event.Changed,
			want: func(i *event.Intent) {
				i.Spec.UserData = &corev1.SecretReference{Namespace: "lab", Name: "user-data"}
				i.Spec.MetaData = &corev1.SecretReference{Name: "meta-data"}
			},
		},
		"a paused host asks what it asked before": {
			object: object(with(v1alpha1.PausedAnnotation, "metal3.io/capm3"), func(o *v1alpha1.BareMetalHost) {
				o.Spec.Image = &v1alpha1.Image{URL: "http://192.0.2.80/os"}
				o.DeletionTimestamp = &metav1.Time{Time: noon}
			}),
			before: knows(), missing: true, fact: event.Paused,
			want: func(i *event.Intent) { i.Paused = true },
		},
		"a host that is moved away asks what it asked before": {
			object: object(with(v1alpha1.DeleteForMoveAnnotation, ""), func(o *v1alpha1.BareMetalHost) { o.DeletionTimestamp = &metav1.Time{Time: noon} }),
			before: knows(), missing: true, fact: event.Paused,
			want: func(i *event.Intent) { i.Paused = true },
		},
		"a host that is resumed asks all that it asks now": {
			object: object(func(o *v1alpha1.BareMetalHost) { o.DeletionTimestamp = &metav1.Time{Time: noon} }),
			before: knows(asked(func(i *event.Intent) { i.Paused = true; *i = sealed(*i) })), fact: event.Unpaused,
			want: func(i *event.Intent) { i.DeletedAt = noon },
		},
		"a deletion comes before all but that": {
			object: object(with(v1alpha1.DetachedAnnotation, ""), with(v1alpha1.RebootAnnotationPrefix, ""), func(o *v1alpha1.BareMetalHost) {
				o.DeletionTimestamp = &metav1.Time{Time: noon}
			}),
			before: knows(), fact: event.Deleting,
			want: func(i *event.Intent) {
				i.DeletedAt, i.Detached = noon, &event.DetachRequest{}
				i.Reboots = []event.RebootRequest{{Mode: v1alpha1.RebootModeSoft, ID: "r8"}}
			},
		},
		"a new host that is being deleted is known first": {
			object: object(func(o *v1alpha1.BareMetalHost) { o.DeletionTimestamp = &metav1.Time{Time: noon} }), fact: event.Created,
		},
		"a plain word detaches": {
			object: object(with(v1alpha1.DetachedAnnotation, "assisted-service-controller")), before: knows(), fact: event.DetachAsked,
			want: func(i *event.Intent) { i.Detached = &event.DetachRequest{} },
		},
		"detaching may hold up a deletion": {
			object: object(with(v1alpha1.DetachedAnnotation, `{"deleteAction":"delay","force":true}`)), before: knows(), fact: event.DetachAsked,
			want: func(i *event.Intent) { i.Detached = &event.DetachRequest{Delay: true, Force: true} },
		},
		"attached again": {
			object: object(), before: knows(asked(func(i *event.Intent) { i.Detached = &event.DetachRequest{}; *i = sealed(*i) })), fact: event.AttachAsked,
		},
		"reboots of all forms, sorted": {
			object: object(with("reboot.metal3.io/b", `{"mode":"hard"}`), with("reboot.metal3.io/a", "no json"), with("reboot.metal3.io", `{"force":true}`)),
			before: knows(), fact: event.RebootRequested,
			want: func(i *event.Intent) {
				i.Reboots = []event.RebootRequest{
					{Mode: v1alpha1.RebootModeSoft, Force: true, ID: "r8"},
					{Key: "a", Mode: v1alpha1.RebootModeSoft, ID: "r8/a"},
					{Key: "b", Mode: v1alpha1.RebootModeHard, ID: "r8/b"},
				}
			},
		},
		"a reboot that is still asked for is the same request": {
			object: object(with("reboot.metal3.io", "")),
			before: knows(asked(func(i *event.Intent) {
				i.Reboots = []event.RebootRequest{{Mode: v1alpha1.RebootModeSoft, ID: "r5"}}
				*i = sealed(*i)
			})),
			want: func(i *event.Intent) { i.Reboots = []event.RebootRequest{{Mode: v1alpha1.RebootModeSoft, ID: "r5"}} },
		},
		"one that was served and set again is another": {
			object: object(with("reboot.metal3.io", ""), with(v1alpha1.ServedRebootAnnotation, "r5")),
			before: knows(asked(func(i *event.Intent) { i.Reboots = []event.RebootRequest{{Mode: v1alpha1.RebootModeSoft, ID: "r5"}} })),
			fact:   event.RebootRequested,
			want:   func(i *event.Intent) { i.Reboots = []event.RebootRequest{{Mode: v1alpha1.RebootModeSoft, ID: "r8"}} },
		},
		"one whose value changed is another": {
			object: object(with("reboot.metal3.io", `{"mode":"hard"}`)),
			before: knows(asked(func(i *event.Intent) { i.Reboots = []event.RebootRequest{{Mode: v1alpha1.RebootModeSoft, ID: "r5"}} })),
			fact:   event.RebootRequested,
			want:   func(i *event.Intent) { i.Reboots = []event.RebootRequest{{Mode: v1alpha1.RebootModeHard, ID: "r8"}} },
		},
		"a key of a client stays its request, whatever was served": {
			object: object(with("reboot.metal3.io/a", ""), with(v1alpha1.ServedRebootAnnotation, "r5/a")),
			before: knows(asked(func(i *event.Intent) {
				i.Reboots = []event.RebootRequest{{Key: "a", Mode: v1alpha1.RebootModeSoft, ID: "r5/a"}}
				*i = sealed(*i)
			})),
			want: func(i *event.Intent) {
				i.Reboots = []event.RebootRequest{{Key: "a", Mode: v1alpha1.RebootModeSoft, ID: "r5/a"}}
			},
		},
		"a key that its client took away": {
			object: object(), fact: event.Changed,
			before: knows(asked(func(i *event.Intent) { i.Reboots = []event.RebootRequest{{Key: "a", ID: "r5/a"}}; *i = sealed(*i) })),
		},
		"an inspection is asked for": {
			object: object(with(v1alpha1.InspectAnnotationPrefix, "")), before: knows(), fact: event.InspectRequested,
			want: func(i *event.Intent) { i.InspectRequest = "r8" },
		},
		"the same request for an inspection": {
			object: object(with(v1alpha1.InspectAnnotationPrefix, "")), before: knows(asked(func(i *event.Intent) { i.InspectRequest = "r5"; *i = sealed(*i) })),
			want: func(i *event.Intent) { i.InspectRequest = "r5" },
		},
		"another one after it was served": {
			object: object(with(v1alpha1.InspectAnnotationPrefix, ""), with(v1alpha1.ServedInspectAnnotation, "r5")),
			before: knows(asked(func(i *event.Intent) { i.InspectRequest = "r5" })), fact: event.InspectRequested,
			want: func(i *event.Intent) { i.InspectRequest = "r8" },
		},
		"inspection is disabled by annotation": {
			object: object(with(v1alpha1.InspectAnnotationPrefix, "disabled"), bootMAC), before: knows(), fact: event.Changed,
			want: func(i *event.Intent) { i.InspectionDisabled, i.Spec.BootMACAddress = true, "00:00:5e:00:53:01" },
		},
		"inspection is disabled by field": {
			object: object(bootMAC, func(o *v1alpha1.BareMetalHost) { o.Spec.InspectionMode = v1alpha1.InspectionModeDisabled }), before: knows(), fact: event.Changed,
			want: func(i *event.Intent) {
				i.InspectionDisabled, i.Spec.InspectionMode, i.Spec.BootMACAddress = true, v1alpha1.InspectionModeDisabled, "00:00:5e:00:53:01"
			},
		},
		"try again now": {
			object: object(with(v1alpha1.RetryAnnotation, "1")), before: knows(), fact: event.RetryRequested,
			want: func(i *event.Intent) { i.Retry = "1" },
		},
		"our other annotations": {
			object: object(with(v1alpha1.BackendAnnotation, "ironic"), with(v1alpha1.ForceDeleteAnnotation, "")), before: knows(), fact: event.Changed,
			want: func(i *event.Intent) { i.Backend, i.ForceDelete = "ironic", true },
		},
		"annotations of others ask nothing": {
			object: object(with("example.com/a", "b"), with(v1alpha1.StatusAnnotation, "{}"), with(v1alpha1.RevisionAnnotation, "{}")), before: knows(),
		},
		"hardware was supplied": {
			object: object(), before: knows(), supply: supply{"d1", "annotation"}, fact: event.Changed,
			want: func(i *event.Intent) { i.Hardware, i.HardwareSource = "d1", "annotation" },
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := surroundings{before: tc.before, secret: "11", supplied: tc.supply, now: noon}
			if tc.missing {
				s.secret = ""
			}
			want := knows().Intent
			if tc.want != nil {
				tc.want(&want)
			}
			want = sealed(want)
			got := intentOf(tc.object, s)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			fact := ""
			if !tc.before.Exists() || got.Hash != tc.before.Intent.Hash {
				fact = factOf(tc.before, got)
			}
			if fact != tc.fact {
				t.Errorf("fact %q, want %q", fact, tc.fact)
			}
			again := tc.before
			again.Intent, again.Rev = got, tc.before.Rev+1
			if frozen(tc.object) || tc.object.Annotations[v1alpha1.ServedRebootAnnotation] != "" || tc.object.DeletionTimestamp != nil {
				return
			}
			s.before, s.now = again, noon.Add(time.Minute)
			if twice := intentOf(tc.object, s); twice.Hash != got.Hash {
				t.Errorf("the same object asks something else a minute later: %s", cmp.Diff(got, twice))
			}
		})
	}
}

func TestABaseIsCarriedAlongUntilItIsReplaced(t *testing.T) {
	base := &event.Base{Registration: &event.Registration{Node: "n"}, Power: &event.Power{}, Rev: 20, Lost: 3}
	h := knows(asked(func(i *event.Intent) { i.Base = base }))
	h = h.WithNewest(event.SectionRegistration, lifecycle.Meta{Rev: 12})
	if got := intentOf(object(), surroundings{before: h, secret: "11"}).Base; got == nil || got.Registration == nil {
		t.Errorf("an event that is older than the base replaced it: %+v", got)
	}
	h = h.WithNewest(event.SectionRegistration, lifecycle.Meta{Rev: 22})
	if got := intentOf(object(), surroundings{before: h, secret: "11"}).Base; got == nil || got.Registration != nil || got.Power == nil {
		t.Errorf("the base is %+v", got)
	}
	h = h.WithNewest(event.SectionPower, lifecycle.Meta{Rev: 23})
	if got := intentOf(object(), surroundings{before: h, secret: "11"}).Base; got != nil {
		t.Errorf("nothing is left of the base, but %+v", got)
	}
}

// What is wished of the firmware stays what it was while nobody has found out, and
// while the host is paused; another wish is a change.
func TestIntentOfFirmware(t *testing.T) {
	turbo := event.SettingChange{Name: "Turbo", From: "Enabled", To: "Disabled"}
	known := func(settings ...event.SettingChange) surroundings {
		return surroundings{secret: "11", now: noon, firmwareKnown: true, firmware: &event.FirmwareWish{Settings: settings}}
	}
	wishes := asked(func(i *event.Intent) {
		i.Firmware = &event.FirmwareWish{ID: "r5", Settings: []event.SettingChange{turbo}}
		*i = sealed(*i)
	})
	for name, tt := range map[string]struct {
		object *v1alpha1.BareMetalHost
		before lifecycle.Host
		with   surroundings
		want   string // the wish's ID
		news   bool
	}{
		"a first wish":                {object(), knows(), known(turbo), "r8", true},
		"the same wish":               {object(), knows(wishes), known(turbo), "r5", false},
		"more":                        {object(), knows(wishes), known(turbo, event.SettingChange{Name: "Zen"}), "r8", true},
		"nobody has found out":        {object(), knows(wishes), surroundings{secret: "11", now: noon}, "r5", false},
		"none any more":               {object(), knows(wishes), surroundings{secret: "11", now: noon, firmwareKnown: true}, "", true},
		"another while it is paused":  {object(with(v1alpha1.PausedAnnotation, "")), knows(wishes), known(event.SettingChange{Name: "Zen"}), "r5", true},
		"a wish of which nobody knew": {object(), knows(), surroundings{secret: "11", now: noon, firmwareKnown: true}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			tt.with.before = tt.before
			next := intentOf(tt.object, tt.with)
			got := ""
			if next.Firmware != nil {
				got = next.Firmware.ID
			}
			if got != tt.want || (next.Hash != tt.before.Intent.Hash) != tt.news {
				t.Errorf("wish %q, news %v; want %q, %v", got, next.Hash != tt.before.Intent.Hash, tt.want, tt.news)
			}
		})
	}
}
