package ironic

import (
	"fmt"
	"strings"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// byPath is where the names of disks are that do not change from boot to boot.
const byPath = "/dev/disk/by-path/"

// hintMap are root device hints in the words of Ironic, nil for none.
func hintMap(h *v1alpha1.RootDeviceHints) map[string]any {
	if h == nil {
		return nil
	}
	m := map[string]any{}
	for key, value := range map[string]string{
		"hctl": h.HCTL, "serial": h.SerialNumber, "wwn": h.WWN, "wwn_with_extension": h.WWNWithExtension, "wwn_vendor_extension": h.WWNVendorExtension,
	} {
		hint(m, key, "s== ", value)
	}
	hint(m, "model", "<in> ", h.Model)
	hint(m, "vendor", "<in> ", h.Vendor)
	if strings.HasPrefix(h.DeviceName, byPath) {
		hint(m, "by_path", "s== ", h.DeviceName)
	} else {
		hint(m, "name", "s== ", h.DeviceName)
	}
	if h.MinSizeGigabytes > 0 {
		m["size"] = fmt.Sprintf(">= %d", h.MinSizeGigabytes)
	}
	if h.Rotational != nil {
		m["rotational"] = fmt.Sprint(*h.Rotational)
	}
	if len(m) == 0 {
		return nil
	}
	return m
}

func hint(m map[string]any, key, operator, value string) {
	if value != "" {
		m[key] = operator + value
	}
}
