// Package seed_test retells, with all services running, the bug for which people
// lost running machines (B01): Ironic's database is lost while the image server is
// down, so that the taking over of hosts in use fails. Nothing may be done to their
// machines, whatever else is wrong at that moment, and all recovers by itself.
package seed_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/integration/ironic/site"
	"github.com/metalbus/metalbus/pkg/ironic/ironictest"
)

const (
	disk = "http://192.0.2.80/os.qcow2"
	live = "http://192.0.2.80/os.iso"
	// down is what an Ironic says that looks at the image server when it adopts.
	down = "Validation of image href http://192.0.2.80/os.qcow2 failed, reason: HTTPConnectionPool(host='192.0.2.80', port=80): Max retries exceeded with url: /os.qcow2"
	// again is how often a failure is seen before it counts as one that comes again.
	again = 3
)

// delays are short, and long enough for nodes to be seen in between.
func delays() ironictest.Delays {
	const short = 5 * time.Millisecond
	return ironictest.Delays{BMC: time.Millisecond, Power: short, Boot: short, Inspect: short, Step: short, Write: short, Heartbeat: short, PowerSync: 500 * time.Millisecond}
}

func withDisk(o *v1alpha1.BareMetalHost) {
	o.Spec.Image = &v1alpha1.Image{URL: disk, Checksum: strings.Repeat("a", 64), ChecksumType: v1alpha1.SHA256}
}

func withLive(o *v1alpha1.BareMetalHost) {
	o.Spec.Image = &v1alpha1.Image{URL: live, DiskFormat: new(v1alpha1.DiskFormatLiveISO)}
}

func withCustom(o *v1alpha1.BareMetalHost) {
	o.Spec.CustomDeploy = &v1alpha1.CustomDeploy{Method: "install_os"}
}

func external(o *v1alpha1.BareMetalHost) { o.Spec.ExternallyProvisioned = true }

// flight is hosts in use whose machines must not be touched from now on.
type flight struct {
	*testing.T
	site  *site.Site
	hosts []*site.Host
	// before is how the machines were.
	before []ironictest.View
	writes int
	since  time.Time
}

// board takes note of how all is.
func board(t *testing.T, s *site.Site, hosts ...*site.Host) *flight {
	t.Helper()
	for _, h := range hosts {
		h.Await(t, "in use", site.Running)
	}
	f := &flight{T: t, site: s, hosts: hosts, writes: len(s.API.Writes()), since: time.Now()}
	for _, h := range hosts {
		f.before = append(f.before, h.Machine.View())
	}
	return f
}

// lose loses the database of Ironic.
func (f *flight) lose() { f.site.Ironic.Forget() }

// imagesDown makes adoptions fail as they do where Ironic looks for the image;
// imagesUp ends that.
func (f *flight) imagesDown() { f.fault(ironictest.Faults{FailAdopt: down}) }

func (f *flight) imagesUp() { f.fault(ironictest.Faults{}) }

func (f *flight) fault(x ironictest.Faults) {
	for _, h := range f.hosts {
		h.Machine.SetFaults(x)
	}
}

// troubled waits until all hosts say again and again what is wrong.
func (f *flight) troubled(kind v1alpha1.ErrorType, text string) {
	f.Helper()
	for _, h := range f.hosts {
		h.Await(f.T, "telling the cause", site.Troubled(kind, again, text))
	}
}

// recovered waits until all hosts are in use and well again, with their nodes.
func (f *flight) recovered() {
	f.Helper()
	for _, h := range f.hosts {
		h.Await(f.T, "well again", func(o *v1alpha1.BareMetalHost) bool {
			n, there := f.site.Ironic.Node(site.Namespace + "~" + h.Name)
			return site.Running(o) && o.Status.ErrorCount == 0 && there && n["provision_state"] == "active" && n["uuid"] == o.Status.Provisioning.ID && n["protected"] == true
		})
	}
}

// untouched checks that nothing was done to the machines, that nothing was asked of
// Ironic that would have done something, and that no host showed another state.
func (f *flight) untouched() {
	f.Helper()
	for i, h := range f.hosts {
		if diff := cmp.Diff(f.before[i], h.Machine.View()); diff != "" {
			f.Errorf("%s: its machine (-before +after):\n%s\nit was: %v", h.Name, diff, h.Machine.Acts())
		}
		want := h.Shown().Status.Provisioning.State
		for _, s := range h.States(f.writes) {
			if s != want {
				f.Errorf("%s was shown as %q", h.Name, s)
			}
		}
	}
	for _, r := range f.site.Ironic.Requests() {
		if r.Time.After(f.since) && touches(r) {
			f.Errorf("Ironic was asked to %s %s %s", r.Method, r.Path, r.Body)
		}
	}
	for _, line := range f.site.Complaints() {
		f.Error(line)
	}
}

// touches reports whether a request would do something to a machine that is on.
func touches(r ironictest.Request) bool {
	if r.Method != "PUT" || strings.HasSuffix(r.Path, "/maintenance") {
		return false
	}
	var verb struct {
		Target string `json:"target"`
	}
	if json.Unmarshal(r.Body, &verb) != nil {
		return true
	}
	// A machine that is on does not mind to be switched on.
	return !slices.Contains([]string{"manage", "adopt", "power on"}, verb.Target)
}

// all declares a host of every kind that can be in use.
func all(t *testing.T, s *site.Site) []*site.Host {
	t.Helper()
	var hosts []*site.Host
	for name, change := range map[string]func(*v1alpha1.BareMetalHost){"disk": withDisk, "live": withLive, "custom": withCustom, "external": external} {
		hosts = append(hosts, s.Declare(t, name, func(o *v1alpha1.BareMetalHost) {
			change(o)
			o.Spec.InspectionMode = v1alpha1.InspectionModeDisabled // the oldest Ironics know no agent that inspects
		}))
	}
	return hosts
}

func TestB01AdoptionFails(t *testing.T) {
	for _, release := range ironictest.Releases() {
		t.Run(fmt.Sprint(release), func(t *testing.T) {
			t.Parallel()
			s := site.New(t, ironictest.Config{Release: release, Delays: delays()})
			f := board(t, s, all(t, s)...)
			f.imagesDown()
			f.lose()
			f.troubled(v1alpha1.ProvisionedRegistrationError, "Validation of image href")
			s.Restart() // who begins now knows what the records say, and no more
			f.troubled(v1alpha1.ProvisionedRegistrationError, "Max retries exceeded")
			f.imagesUp()
			f.recovered()
			f.untouched()
		})
	}
}

// The database is lost again and again, also while hosts are being taken over.
func TestB01LostAgainAndAgain(t *testing.T) {
	s := site.New(t, ironictest.Config{Delays: delays()})
	f := board(t, s, all(t, s)...)
	f.imagesDown()
	for range 5 {
		f.lose()
		f.hosts[0].Await(t, "enrolled anew", func(*v1alpha1.BareMetalHost) bool { return len(s.Ironic.Nodes()) > 0 })
	}
	f.troubled(v1alpha1.ProvisionedRegistrationError, "Validation of image href")
	f.imagesUp()
	f.lose()
	f.recovered()
	f.untouched()
}

// The BMC is dead at that moment: registration fails before adoption can.
func TestB01WithADeadBMC(t *testing.T) {
	s := site.New(t, ironictest.Config{Delays: delays()})
	f := board(t, s, all(t, s)...)
	f.fault(ironictest.Faults{Down: true, FailAdopt: down})
	f.lose()
	f.troubled(v1alpha1.RegistrationError, "Unable to connect")
	f.imagesDown() // and the BMC answers
	f.troubled(v1alpha1.ProvisionedRegistrationError, "Validation of image href")
	f.imagesUp()
	f.recovered()
	f.untouched()
}

// The Secret is wrong at that moment, or not there.
func TestB01WithAWrongSecret(t *testing.T) {
	for name, spoil := range map[string]struct {
		do   func(*testing.T, *site.Site, *site.Host)
		says string
	}{
		"wrong password": {func(_ *testing.T, _ *site.Site, h *site.Host) { h.Password("wrong") }, "401"},
		"no password": {func(_ *testing.T, s *site.Site, h *site.Host) {
			s.Keep(h.Name+"-bmc", map[string]string{"username": "admin"})
		}, "password"},
		"no Secret": {func(_ *testing.T, s *site.Site, h *site.Host) {
			s.API.Purge("secrets", site.Namespace, h.Name+"-bmc")
		}, h404},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := site.New(t, ironictest.Config{Delays: delays()})
			f := board(t, s, all(t, s)...)
			f.imagesDown()
			for _, h := range f.hosts {
				spoil.do(t, s, h)
			}
			f.lose()
			f.spoilt(spoil.says)
			s.Restart()
			for _, h := range f.hosts {
				h.Password(h.Machine.Spec().Password)
			}
			f.troubled(v1alpha1.ProvisionedRegistrationError, "Validation of image href")
			f.imagesUp()
			f.recovered()
			f.untouched()
		})
	}
}

// h404 is what is said of a Secret that is not there.
const h404 = "-bmc"

// spoilt waits until all hosts say that their registration fails, and why.
func (f *flight) spoilt(text string) {
	f.Helper()
	for _, h := range f.hosts {
		h.Await(f.T, "telling what is wrong with its Secret", site.Troubled(v1alpha1.RegistrationError, 1, text))
	}
}

// Fifty hosts at once.
func TestB01FiftyHosts(t *testing.T) {
	const many = 50
	s := site.New(t, ironictest.Config{Delays: delays()})
	kinds := []func(*v1alpha1.BareMetalHost){withDisk, withLive, withCustom, external}
	var hosts []*site.Host
	for i := range many {
		hosts = append(hosts, s.Declare(t, fmt.Sprint("host-", i), kinds[i%len(kinds)]))
	}
	f := board(t, s, hosts...)
	f.imagesDown()
	f.lose()
	f.troubled(v1alpha1.ProvisionedRegistrationError, "Validation of image href")
	f.imagesUp()
	f.recovered()
	f.untouched()
}

// Only its user can end the use of a host. One that asks for that while its adoption
// fails gets it once that works: the machine is then cleaned.
func TestB01DeprovisionedByItsUser(t *testing.T) {
	s := site.New(t, ironictest.Config{Delays: delays()})
	h := s.Declare(t, "disk", withDisk)
	f := board(t, s, h)
	f.imagesDown()
	f.lose()
	f.troubled(v1alpha1.ProvisionedRegistrationError, "Leave spec.image as it is")
	f.untouched()
	s.User.Change(h.Name, func(o *v1alpha1.BareMetalHost) { o.Spec.Image = nil })
	f.imagesUp()
	h.Await(t, "available", site.In(v1alpha1.StateAvailable))
	if v := h.Machine.View(); v.Disk.Erases == f.before[0].Disk.Erases {
		t.Error("its disk was not cleaned")
	}
}

// A host is deleted although its adoption fails.
func TestB01Deleted(t *testing.T) {
	s := site.New(t, ironictest.Config{Delays: delays()})
	h := s.Declare(t, "disk", withDisk)
	f := board(t, s, h)
	f.imagesDown()
	f.lose()
	f.troubled(v1alpha1.ProvisionedRegistrationError, "Validation of image href")
	f.untouched()
	s.User.DeleteHost(h.Name)
	h.Await(t, "gone", site.Gone)
}
