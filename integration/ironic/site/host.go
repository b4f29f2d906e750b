package site

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/ironic/ironictest"
)

// A Host is a host of a site, with its machine.
type Host struct {
	Name    string
	Machine *ironictest.Machine
	site    *Site
}

// Declare puts a machine into the rack, and makes its Secret and its host, which is
// online and has no image unless change says so.
func (s *Site) Declare(tb testing.TB, name string, change func(*v1alpha1.BareMetalHost)) *Host {
	tb.Helper()
	m, err := s.Ironic.Rack().Add(ironictest.Spec{Name: name, SystemID: "/redfish/v1/Systems/1"})
	if err != nil {
		tb.Fatal(err)
	}
	h := &Host{Name: name, Machine: m, site: s}
	spec := m.Spec()
	s.Keep(name+"-bmc", map[string]string{"username": spec.Username, "password": spec.Password})
	o := &v1alpha1.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Name: name}}
	o.Spec.Online, o.Spec.BootMACAddress = true, spec.MACs[0]
	o.Spec.BMC = v1alpha1.BMCDetails{Address: "redfish-virtualmedia+" + spec.Address + spec.SystemID, CredentialsName: name + "-bmc"}
	if change != nil {
		change(o)
	}
	s.User.Create(o)
	return h
}

// Keep makes or changes a Secret.
func (s *Site) Keep(name string, data map[string]string) {
	o := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: Namespace}}
	there := s.User.Read(o)
	o.Data = map[string][]byte{}
	for k, v := range data {
		o.Data[k] = []byte(v)
	}
	if there {
		s.User.Update(o)
	} else {
		s.User.Create(o)
	}
}

// Password says in the host's Secret what the password of its BMC is.
func (h *Host) Password(password string) {
	h.site.Keep(h.Name+"-bmc", map[string]string{"username": h.Machine.Spec().Username, "password": password})
}

// Shown is the host as Kubernetes shows it, nil if there is none.
func (h *Host) Shown() *v1alpha1.BareMetalHost {
	var o v1alpha1.BareMetalHost
	if !h.site.API.Object("baremetalhosts", Namespace, h.Name, &o) {
		return nil
	}
	return &o
}

// patience is how long a test waits for what must come.
const patience = 90 * time.Second

// Await waits until the host is shown to be so.
func (h *Host) Await(tb testing.TB, what string, is func(*v1alpha1.BareMetalHost) bool) {
	tb.Helper()
	deadline := time.Now().Add(patience)
	for !is(h.Shown()) {
		if time.Now().After(deadline) {
			node, _ := h.site.Ironic.Node(Namespace + "~" + h.Name)
			tb.Fatalf("%s is not %s in time: %s; its node is %v (%v); complaints: %v", h.Name, what, h.describe(), node["provision_state"], node["last_error"], h.site.Complaints())
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (h *Host) describe() string {
	o := h.Shown()
	if o == nil {
		return "it is gone"
	}
	st := o.Status
	return fmt.Sprintf("%q, %q, %s %q (%d), on %v", st.Provisioning.State, st.OperationalStatus, st.ErrorType, st.ErrorMessage, st.ErrorCount, st.PoweredOn)
}

// In is a condition for Await: the host shows a state, and no error.
func In(state v1alpha1.ProvisioningState) func(*v1alpha1.BareMetalHost) bool {
	return func(o *v1alpha1.BareMetalHost) bool {
		return o != nil && o.Status.Provisioning.State == state && o.Status.ErrorMessage == ""
	}
}

// Running is a condition for Await: the host is in use, on, and without an error.
func Running(o *v1alpha1.BareMetalHost) bool {
	if o == nil || !o.Status.PoweredOn {
		return false
	}
	return In(v1alpha1.StateProvisioned)(o) || In(v1alpha1.StateExternallyProvisioned)(o)
}

// Troubled is a condition for Await: the host shows an error of the type that has
// been met so often at least, with the text in its message.
func Troubled(kind v1alpha1.ErrorType, count int, text string) func(*v1alpha1.BareMetalHost) bool {
	return func(o *v1alpha1.BareMetalHost) bool {
		if o == nil {
			return false
		}
		st := o.Status
		return st.OperationalStatus == v1alpha1.OperationalStatusError && st.ErrorType == kind && st.ErrorCount >= count && strings.Contains(st.ErrorMessage, text)
	}
}

// Gone is a condition for Await.
func Gone(o *v1alpha1.BareMetalHost) bool { return o == nil }

// States are the provisioning states that the host's status was given since so many
// writes to the API, each once.
func (h *Host) States(since int) []v1alpha1.ProvisioningState {
	var list []v1alpha1.ProvisioningState
	for _, w := range h.site.API.Writes()[since:] {
		if w.Resource != "baremetalhosts" || w.Subresource != "status" || w.Name != h.Name || w.Code >= 300 {
			continue
		}
		var o struct {
			Status struct {
				Provisioning struct {
					State *v1alpha1.ProvisioningState `json:"state"`
				} `json:"provisioning"`
			} `json:"status"`
		}
		if json.Unmarshal([]byte(w.Body), &o) != nil {
			continue // a patch of another kind has no states in it
		}
		if s := o.Status.Provisioning.State; s != nil && !slices.Contains(list, *s) {
			list = append(list, *s)
		}
	}
	return list
}
