package ironictest

import "fmt"

// words are an error in Ironic's own words, which begin and end as they like.
type words string

func (w words) Error() string { return string(w) }

func says(format string, args ...any) error { return words(fmt.Sprintf(format, args...)) }

// What a BMC says no to.
const (
	errRefusedPower words = "HTTP POST returned code 400. Base.1.8.GeneralError: The requested power action is refused."
	errRefusedMedia words = "HTTP POST returned code 400. Base.1.8.GeneralError: The virtual media is refused."
)

// bmc is how a node names its machine.
type bmc struct {
	node, address, system string
	user, password        string
	ipmi                  bool
	missing               string // the property that should be there
}

// bmcOf reads driver_info.
func bmcOf(n *node) bmc {
	info := n.object("driver_info")
	text := func(k string) string {
		s, _ := info[k].(string)
		return s
	}
	b := bmc{node: n.uuid, ipmi: n.text("driver") == "ipmi"}
	if b.ipmi {
		b.address, b.user, b.password = text("ipmi_address"), text("ipmi_username"), text("ipmi_password")
		if b.address == "" {
			b.missing = "ipmi_address"
			return b
		}
		b.address = "ipmi://" + b.address
		if port := fmt.Sprint(info["ipmi_port"]); info["ipmi_port"] != nil {
			b.address += ":" + port
		}
		return b
	}
	b.address, b.user, b.password, b.system = text("redfish_address"), text("redfish_username"), text("redfish_password"), text("redfish_system_id")
	if b.address == "" {
		b.missing = "redfish_address"
	}
	return b
}

// reach asks the BMC of a node for its machine, with the node's credentials.
func (r *Rack) reach(b bmc) (*Machine, error) {
	m, known := r.find(b.address, b.system)
	if !known {
		return nil, b.noAnswer()
	}
	if m == nil {
		return nil, says("Redfish exception occurred. Error: Resource %s%s not found", b.address, b.system)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.faults.Down:
		return nil, b.noAnswer()
	case (m.user != b.user || m.password != b.password) && b.ipmi:
		return nil, b.noAnswer()
	case m.user != b.user || m.password != b.password:
		return nil, says("Redfish exception occurred. Error: HTTP GET %s%s returned code 401. Base.1.8.NoValidSession: There is no valid session established with the implementation. Extended information: none", b.address, b.system)
	}
	return m, nil
}

// noAnswer is what a BMC that does not answer looks like. IPMI says the same of a
// wrong password.
func (b bmc) noAnswer() error {
	if b.ipmi {
		return says("IPMI call failed: power status.")
	}
	return says("Redfish connection failed for node %s: Unable to connect to %s/redfish/v1/. Error: Max retries exceeded with url: /redfish/v1/ (Caused by NewConnectionError('[Errno 111] ECONNREFUSED'))", b.node, b.address)
}

// said gives a refusal of a BMC in the words of the driver.
func (b bmc) said(err error) error {
	if b.ipmi {
		return err
	}
	return says("Redfish exception occurred. Error: %s", err)
}
