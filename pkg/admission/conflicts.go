package admission

import (
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/bmcaddress"
)

// ConflictKeys are what two hosts that are one machine have in common, to find
// candidates for ConflictWarnings by in an index.
func ConflictKeys(host *v1alpha1.BareMetalHost) []string {
	var keys []string
	if bmc, ok := locate(host); ok {
		keys = append(keys, "bmc/"+bmc.endpoint)
	}
	if mac := bootMAC(host); mac != "" {
		keys = append(keys, "mac/"+mac)
	}
	return keys
}

// ConflictWarnings names the hosts among others that have the BMC or the boot
// MAC address of host. Two hosts on one machine are allowed, since one of them
// may be on its way out, but they undo each other's work.
func ConflictWarnings(host *v1alpha1.BareMetalHost, others []v1alpha1.BareMetalHost) []string {
	var warnings []string
	for i := range others {
		other := &others[i]
		if other.Namespace == host.Namespace && other.Name == host.Name {
			continue
		}
		if sameBMC(host, other) {
			warnings = append(warnings, fmt.Sprintf("spec.bmc.address: host %s/%s has the same BMC", other.Namespace, other.Name))
		}
		if mac := bootMAC(host); mac != "" && mac == bootMAC(other) {
			warnings = append(warnings, fmt.Sprintf("spec.bootMACAddress: host %s/%s has the same address %s", other.Namespace, other.Name, mac))
		}
	}
	return warnings
}

// bmcPlace is where a BMC is and which of its machines is meant.
type bmcPlace struct {
	// endpoint is host and port in one form.
	endpoint string
	// system is the machine's path; empty if the BMC has only one.
	system string
}

func locate(host *v1alpha1.BareMetalHost) (bmcPlace, bool) {
	address, err := bmcaddress.Parse(host.Spec.BMC.Address, false)
	if err != nil || address.Host == "" {
		return bmcPlace{}, false
	}
	name := strings.ToLower(address.Host)
	if addr, err := netip.ParseAddr(name); err == nil {
		name = addr.String()
	}
	return bmcPlace{endpoint: net.JoinHostPort(name, address.PortOrDefault()), system: address.SystemPath()}, true
}

// sameBMC says whether two hosts mean one machine of one BMC. A host that names
// no machine means the only one there is.
func sameBMC(a, b *v1alpha1.BareMetalHost) bool {
	x, okX := locate(a)
	y, okY := locate(b)
	if !okX || !okY || x.endpoint != y.endpoint {
		return false
	}
	return x.system == y.system || x.system == "" || y.system == ""
}

// bootMAC is a host's boot MAC address in one form.
func bootMAC(host *v1alpha1.BareMetalHost) string {
	return strings.ToLower(host.Spec.BootMACAddress)
}
