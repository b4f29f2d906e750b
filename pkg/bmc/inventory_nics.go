package bmc

import (
	"encoding/hex"
	"slices"
	"strings"

	"github.com/stmcginnis/gofish/redfish"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// nics are the network cards, one entry for each MAC address. They are the system's
// interfaces or, where it has none, what is in the chassis.
func (c *collector) nics() ([]v1alpha1.NIC, error) {
	all, err := parts[redfish.EthernetInterface](c, "network interfaces", c.system.EthernetInterfaces.ID)
	if err != nil {
		return nil, err
	}
	var found nicList
	for _, n := range all {
		mac := n.MACAddress
		if normalMAC(mac) == "" {
			mac = n.PermanentMACAddress
		}
		found.add(v1alpha1.NIC{Name: n.ID, SpeedGbps: speedGbps(n.SpeedMbps)}, mac, absent(n.Status))
	}
	if len(found) > 0 {
		return found, nil
	}
	for _, l := range c.system.Links.Chassis {
		if err := c.chassisNICs(pathOf(l.ID), &found); err != nil {
			return nil, err
		}
	}
	return found, nil
}

type nicList []v1alpha1.NIC

// add takes a card in that has an address no other has.
func (l *nicList) add(n v1alpha1.NIC, mac string, gone bool) {
	n.MAC = normalMAC(mac)
	if gone || n.MAC == "" || slices.ContainsFunc(*l, func(x v1alpha1.NIC) bool { return x.MAC == n.MAC }) {
		return
	}
	*l = append(*l, n)
}

// chassisNICs goes through the adapters of a chassis: their functions have the
// addresses, their ports the speeds.
func (c *collector) chassisNICs(chassis string, found *nicList) error {
	var body struct{ NetworkAdapters link }
	if _, _, err := c.get(chassis, &body); err != nil {
		return err
	}
	members, err := c.all(pathOf(body.NetworkAdapters.ID))
	if err != nil {
		return err
	}
	for _, a := range decodeParts[adapterBody](c, "network adapters", members) {
		if err := c.adapterNICs(a, found); err != nil {
			return err
		}
	}
	return nil
}

type adapterBody struct {
	Manufacturer           string
	Model                  string
	NetworkDeviceFunctions link
	Ports                  link
	NetworkPorts           link
}

func (c *collector) adapterNICs(a *adapterBody, found *nicList) error {
	functions, err := parts[redfish.NetworkDeviceFunction](c, "network functions", a.NetworkDeviceFunctions.ID)
	if err != nil {
		return err
	}
	speeds, err := c.portSpeeds(a)
	if err != nil {
		return err
	}
	model := strings.TrimSpace(a.Manufacturer + " " + a.Model)
	for _, f := range functions {
		mac := f.Ethernet.MACAddress
		if normalMAC(mac) == "" {
			mac = f.Ethernet.PermanentMACAddress
		}
		found.add(v1alpha1.NIC{Name: f.ID, Model: model, SpeedGbps: speeds[normalMAC(mac)]}, mac, absent(f.Status))
	}
	return nil
}

// portSpeeds are the speeds of an adapter's ports by address, from whichever of the
// two kinds of port the BMC has.
func (c *collector) portSpeeds(a *adapterBody) (map[string]int, error) {
	speeds := map[string]int{}
	ports, err := parts[redfish.Port](c, "network ports", a.Ports.ID)
	if err != nil {
		return nil, err
	}
	for _, p := range ports {
		for _, mac := range p.Ethernet.AssociatedMACAddresses {
			speeds[normalMAC(mac)] = speedGbps(int(p.CurrentSpeedGbps * mbpsPerGbps))
		}
	}
	if len(ports) > 0 {
		return speeds, nil
	}
	old, err := parts[redfish.NetworkPort](c, "network ports", a.NetworkPorts.ID)
	if err != nil {
		return nil, err
	}
	for _, p := range old {
		for _, mac := range p.AssociatedNetworkAddresses {
			speeds[normalMAC(mac)] = speedGbps(p.CurrentLinkSpeedMbps)
		}
	}
	return speeds, nil
}

const mbpsPerGbps = 1000

// speedGbps is a speed in whole Gbit/s. 0 means below 1, no link or not known; what
// BMCs say in place of a number that they do not have is never shown.
func speedGbps(mbps int) int { return max(mbps, 0) / mbpsPerGbps }

// normalMAC writes an address in lower case with colons; "" if it is no address of
// one card.
func normalMAC(mac string) string {
	raw, err := hex.DecodeString(strings.NewReplacer(":", "", "-", "", ".", "").Replace(strings.TrimSpace(mac)))
	if err != nil || len(raw) != 6 || raw[0]&1 != 0 || strings.Trim(string(raw), "\x00") == "" {
		return ""
	}
	pairs := make([]string, len(raw))
	for i, b := range raw {
		pairs[i] = hex.EncodeToString([]byte{b})
	}
	return strings.Join(pairs, ":")
}
