package bmc

import (
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/stmcginnis/gofish/common"
	"github.com/stmcginnis/gofish/redfish"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// disks are the drives behind the storage controllers or, where there are none, the
// devices of the simple storage. RAID volumes are not among them.
func (c *collector) disks() ([]v1alpha1.Storage, error) {
	var out []v1alpha1.Storage
	drives, err := c.drives()
	if err != nil {
		return nil, err
	}
	for _, d := range drives {
		if !absent(d.Status) {
			out = append(out, disk(d))
		}
	}
	if len(out) > 0 {
		return out, nil
	}
	simple, err := parts[redfish.SimpleStorage](c, "simple storage", c.system.SimpleStorage.ID)
	if err != nil {
		return nil, err
	}
	for _, s := range simple {
		for _, d := range s.Devices {
			if !absent(d.Status) && d.CapacityBytes > 0 {
				out = append(out, simpleDisk(d))
			}
		}
	}
	return out, nil
}

// drives reads the controllers with their drives: all of them in one request where
// the service goes two levels deep, one request a controller where it goes one.
func (c *collector) drives() ([]*redfish.Drive, error) {
	controllers, err := c.controllers()
	if isOdd(err) {
		c.note("the storage could not be read")
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []*redfish.Drive
	for _, x := range controllers {
		bodies, err := c.whole(x.Drives)
		if err != nil {
			return nil, err
		}
		out = append(out, decodeParts[redfish.Drive](c, "drives", bodies)...)
	}
	return out, nil
}

type controllerBody struct {
	Drives []json.RawMessage
}

func (c *collector) controllers() ([]controllerBody, error) {
	const deep = 2
	path := pathOf(c.system.Storage.ID)
	if path == "" {
		return nil, nil
	}
	var page collectionBody
	if c.levels() >= deep {
		if _, err := c.expanded(path, deep, &page); err != nil {
			return nil, err
		}
	} else {
		members, err := c.members(path)
		if err != nil {
			return nil, err
		}
		page.Members = members
	}
	var out []controllerBody
	for _, m := range page.Members {
		var x controllerBody
		where, isLink := onlyLink(m)
		switch {
		case isLink:
			if _, err := c.expanded(where, 1, &x); err != nil && !isOdd(err) {
				return nil, err
			}
		case json.Unmarshal(m, &x) != nil:
			c.note("one of the storage controllers is described in a way that is not understood")
		}
		out = append(out, x)
	}
	return out, nil
}

func disk(d *redfish.Drive) v1alpha1.Storage {
	s := v1alpha1.Storage{
		Name: d.ID, SizeBytes: v1alpha1.Capacity(max(d.CapacityBytes, 0)), Vendor: strings.TrimSpace(d.Manufacturer), Model: strings.TrimSpace(d.Model),
		SerialNumber: strings.TrimSpace(d.SerialNumber), Type: diskType(d),
	}
	s.Rotational = s.Type == v1alpha1.HDD
	for _, id := range d.Identifiers {
		if s.WWN == "" {
			s.WWN, s.WWNVendorExtension, s.WWNWithExtension = wwn(id)
		}
	}
	return s
}

// diskType is HDD for all that turns, NVME for flash on PCI Express, SSD for other
// flash, and empty if the BMC does not say.
func diskType(d *redfish.Drive) v1alpha1.DiskType {
	switch {
	case d.MediaType == redfish.HDDMediaType, d.MediaType == redfish.SMRMediaType, d.RotationSpeedRPM > 0:
		return v1alpha1.HDD
	case d.Protocol == common.NVMeProtocol:
		return v1alpha1.NVME
	case d.MediaType == redfish.SSDMediaType:
		return v1alpha1.SSD
	default:
		return ""
	}
}

// wwn writes a world wide name as Linux does, so that it can serve as a root device
// hint: 0x and 16 digits, the rest as the vendor's extension; for NVMe, eui. and the
// digits. Empty for names of other kinds.
func wwn(id common.Identifier) (name, extension, whole string) {
	const digits = 16
	bare := strings.ToLower(strings.NewReplacer(":", "", "-", "", " ", "").Replace(id.DurableName))
	bare = strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(bare, "0x"), "eui."), "naa.")
	if _, err := hex.DecodeString(bare); err != nil || len(bare) < digits || strings.Trim(bare, "0") == "" {
		return "", "", ""
	}
	switch id.DurableNameFormat {
	case common.NAADurableNameFormat:
		name, extension = "0x"+bare[:digits], bare[digits:]
		if extension == "" {
			return name, "", name
		}
		return name, "0x" + extension, name + extension
	case common.EUIDurableNameFormat:
		return "eui." + bare, "", "eui." + bare
	default:
		return "", "", ""
	}
}

// simpleDisk is a device of simple storage, which tells little: of its kind only what
// its name says.
func simpleDisk(d redfish.Device) v1alpha1.Storage {
	s := v1alpha1.Storage{
		Name: strings.TrimSpace(d.Name), SizeBytes: v1alpha1.Capacity(d.CapacityBytes), Vendor: strings.TrimSpace(d.Manufacturer), Model: strings.TrimSpace(d.Model),
	}
	if strings.Contains(strings.ToLower(d.Name), "nvme") {
		s.Type = v1alpha1.NVME
	}
	return s
}
