package bmcsim

// View is what a machine and its BMC look like to somebody who stands before them.
type View struct {
	ID      string  `json:"id"`
	Name    string  `json:"name"`
	Profile string  `json:"profile"`
	Power   string  `json:"power"` // On, Off, PoweringOn, PoweringOff
	Running Running `json:"running"`
	// Boots counts how many times the machine has begun to boot.
	Boots int `json:"boots"`
	// Disk is the image on the disk, if any.
	Disk string `json:"disk,omitempty"`
	// Media are the images in the virtual drives, by drive.
	Media      map[string]string `json:"media,omitempty"`
	BootTarget string            `json:"bootTarget"` // of the boot override
	BootOnce   string            `json:"bootEnabled"`
	SecureBoot bool              `json:"secureBoot"`
	Health     string            `json:"health"`
	Settings   map[string]any    `json:"settings"` // firmware settings in force
	BIOS       string            `json:"bios"`     // versions of firmware
	BMC        string            `json:"bmc"`
	NIC        string            `json:"nic"`
	Faults     Faults            `json:"faults,omitzero"`
	Commands   int               `json:"commands"` // state-changing requests so far, at most the log's length
}

// View looks at the host as it is now.
func (h *Host) View() View {
	h.mu.Lock()
	defer h.mu.Unlock()
	v := View{
		ID: h.uuid, Name: h.name, Profile: h.shape.name, Power: h.powerState(), Running: h.machine.running, Boots: h.machine.boots, Disk: h.machine.disk,
		BootTarget: h.machine.boot.Target, BootOnce: h.machine.boot.Enabled, SecureBoot: h.secure, Health: h.health, Settings: h.current(),
		BIOS: h.versions.BIOS, BMC: h.versions.BMC, NIC: h.versions.NIC, Faults: h.faults, Commands: len(h.ledger.commands),
	}
	for i, m := range h.shape.media {
		if h.media[i].Inserted {
			if v.Media == nil {
				v.Media = map[string]string{}
			}
			v.Media[m.id] = h.media[i].Image
		}
	}
	return v
}

// Views are all hosts as they are now, in the order in which they were added.
func (s *Sim) Views() []View {
	hosts := s.Hosts()
	views := make([]View, 0, len(hosts))
	for _, h := range hosts {
		views = append(views, h.View())
	}
	return views
}
