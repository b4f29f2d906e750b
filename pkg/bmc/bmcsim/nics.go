package bmcsim

import (
	"slices"
	"strings"
)

// mac is the address of the host's nth card, as its BMC writes it.
func (h *Host) mac(n int) string {
	nic := h.shape.nics[n]
	m := nic.mac
	if m == "" {
		m = h.id.mac(n)
	}
	if nic.upper {
		return strings.ToUpper(m)
	}
	return m
}

// nic finds a card by what tells it; -1 if there is none.
func (p *profile) nic(match func(nicShape) bool) int { return slices.IndexFunc(p.nics, match) }

func getInterfaces(c *call) answer {
	var ids []string
	for _, n := range c.host.shape.nics {
		ids = append(ids, n.id)
	}
	return c.collection("EthernetInterface", "System Ethernet Interfaces", ids...)
}

func getInterface(c *call) answer {
	i := c.host.shape.nic(func(n nicShape) bool { return n.id == c.id(1) })
	if i < 0 || c.host.shape.nicsChassis {
		return missing(root + "/" + c.path)
	}
	n := c.host.shape.nics[i]
	b := c.resource("EthernetInterface.v1_6_0.EthernetInterface", n.id, n.name)
	b["MACAddress"], b["PermanentMACAddress"], b["SpeedMbps"] = c.host.mac(i), c.host.mac(i), n.mbps
	b["LinkStatus"], b["Status"] = linkStatus(n), enabled()
	return ok(b)
}

func linkStatus(n nicShape) string {
	if n.down {
		return "LinkDown"
	}
	return "LinkUp"
}

// adapterIDs are the cards in the chassis, each once.
func (p *profile) adapterIDs() []string {
	var ids []string
	for _, n := range p.nics {
		if n.adapter != "" && !slices.Contains(ids, n.adapter) {
			ids = append(ids, n.adapter)
		}
	}
	return ids
}

func (p *profile) portsOf(adapter string, id func(nicShape) string) []string {
	var ids []string
	for _, n := range p.nics {
		if n.adapter == adapter {
			ids = append(ids, id(n))
		}
	}
	return ids
}

func getAdapters(c *call) answer {
	return c.collection("NetworkAdapter", "Network Adapter Collection", c.host.shape.adapterIDs()...)
}

func getAdapter(c *call) answer {
	if !slices.Contains(c.host.shape.adapterIDs(), c.id(1)) {
		return missing(root + "/" + c.path)
	}
	c.host.mu.Lock()
	defer c.host.mu.Unlock()
	b := c.resource("NetworkAdapter.v1_8_0.NetworkAdapter", c.id(1), c.id(1))
	b["Manufacturer"], b["Model"], b["SerialNumber"], b["Status"] = "Mellanox Technologies", "ConnectX-6 Lx", c.host.id.serial(c.id(1), 12), enabled()
	b["Controllers"] = []obj{{"FirmwarePackageVersion": c.host.versions.NIC}}
	b["NetworkDeviceFunctions"] = link{c.chassis("NetworkAdapters", c.id(1), "NetworkDeviceFunctions")}
	b["Ports"] = link{c.chassis("NetworkAdapters", c.id(1), "Ports")}
	return ok(b)
}

func getFunctions(c *call) answer {
	return c.collection("NetworkDeviceFunction", "Network Device Functions", c.host.shape.portsOf(c.id(1), func(n nicShape) string { return n.function })...)
}

func getFunction(c *call) answer {
	i := c.host.shape.nic(func(n nicShape) bool { return n.adapter == c.id(1) && n.function == c.id(2) })
	if i < 0 {
		return missing(root + "/" + c.path)
	}
	n := c.host.shape.nics[i]
	b := c.resource("NetworkDeviceFunction.v1_8_0.NetworkDeviceFunction", n.function, n.name)
	b["NetDevFuncType"], b["Status"] = "Ethernet", enabled()
	b["Ethernet"] = obj{"MACAddress": c.host.mac(i), "PermanentMACAddress": c.host.mac(i)}
	b["Links"] = obj{"PhysicalPortAssignment": link{c.chassis("NetworkAdapters", n.adapter, "Ports", n.id)}}
	return ok(b)
}

func getPorts(c *call) answer {
	return c.collection("Port", "Ports", c.host.shape.portsOf(c.id(1), func(n nicShape) string { return n.id })...)
}

func getPort(c *call) answer {
	i := c.host.shape.nic(func(n nicShape) bool { return n.adapter == c.id(1) && n.id == c.id(2) })
	if i < 0 {
		return missing(root + "/" + c.path)
	}
	n := c.host.shape.nics[i]
	b := c.resource("Port.v1_6_0.Port", n.id, n.name)
	b["PortType"], b["LinkStatus"], b["CurrentSpeedGbps"], b["Status"] = "BidirectionalPort", linkStatus(n), gbps(n.mbps), enabled()
	b["Ethernet"] = obj{"AssociatedMACAddresses": []string{c.host.mac(i)}}
	return ok(b)
}
