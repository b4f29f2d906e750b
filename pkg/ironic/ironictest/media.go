package ironictest

import (
	"fmt"
	"net/http"
	"slices"
)

// getBootDevice asks the BMC what the machine boots from next, with the credentials
// that the node has now.
func getBootDevice(c *call) (answer, error) {
	n, err := c.unlocked()
	if err != nil {
		return nothing(err)
	}
	m := c.i.phantom(n)
	if m == nil {
		if m, err = c.i.cfg.Rack.reach(bmcOf(n)); err != nil {
			return nothing(refuse(http.StatusInternalServerError, "%s", err))
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	device := map[string]string{"cd": "cdrom"}[m.boot]
	if device == "" {
		device = m.boot
	}
	return ok(obj{"boot_device": device, "persistent": device == "disk"})
}

// getMedia shows the virtual drives of the BMC.
func getMedia(c *call) (answer, error) {
	if err := c.needs(minorGetMedia); err != nil {
		return nothing(err)
	}
	n, err := c.node()
	if err != nil {
		return nothing(err)
	}
	if n.state.reservation != "" && c.i.cfg.Release < Ironic39 {
		return nothing(locked(n))
	}
	if n.text("management_interface") != "redfish" {
		return nothing(bad("Driver %s does not support get_virtual_media (disabled or not implemented).", n.text("driver")))
	}
	m, err := c.i.cfg.Rack.reach(bmcOf(n))
	if err != nil {
		return nothing(refuse(http.StatusInternalServerError, "%s", err))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return ok([]any{
		obj{"media_types": []any{"CD", "DVD"}, "inserted": m.cd != "", "image": m.cd},
		obj{"media_types": []any{"USBStick", "Floppy"}, "inserted": false, "image": ""},
	})
}

// postMedia attaches an image, in the background.
func postMedia(c *call) (answer, error) {
	if err := c.needs(minorAttach); err != nil {
		return nothing(err)
	}
	n, err := c.unlocked()
	if err != nil {
		return nothing(err)
	}
	body, err := c.read("device_type", "image_url", "image_download_source")
	if err != nil {
		return nothing(err)
	}
	device, _ := body["device_type"].(string)
	image, _ := body["image_url"].(string)
	switch {
	case device == "" || image == "":
		return nothing(bad("Schema error for vmedia: 'device_type' and 'image_url' are required properties"))
	case !slices.Contains([]string{"cdrom", "disk", "floppy"}, device):
		return nothing(bad("Schema error for vmedia: '%s' is not one of ['cdrom', 'disk', 'floppy']", device))
	case n.text("management_interface") != "redfish":
		return nothing(bad("Driver %s does not support attach_virtual_media (disabled or not implemented).", n.text("driver")))
	}
	if n.maintenance() && n.state.fault == powerFailure && c.i.cfg.Release >= Ironic39 {
		return nothing(refuse(http.StatusServiceUnavailable, "Unable to attach virtual media for node %s due to power failure state", n.uuid))
	}
	n.state.lastError = ""
	c.i.beside(n, func(o *operation) error { return o.attach(device, image) })
	return done(http.StatusNoContent)
}

func (o *operation) attach(device, image string) error {
	// Whatever the caller says of the source, the BMC is given Ironic's own copy.
	shown := "http://" + conductor + "/redfish/" + device + "-" + o.n.uuid + ".iso"
	wrong := o.i.fetch(image, "")
	if wrong == nil {
		wrong = o.reach(func(m *Machine) error { return m.insert(shown) })
	} else {
		wrong = says("Validation of image href %s failed, reason: %s", image, wrong)
	}
	if wrong == nil {
		return nil
	}
	return o.complain("Could not attach device %s to node %s: %s", device, o.n.uuid, wrong)
}

// complain says what went wrong without an effect on the node's state.
func (o *operation) complain(format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	return o.with(func(n *node) {
		o.i.record(n, "conductor", "ERROR", text)
		n.state.lastError = text
	})
}

// deleteMedia detaches images, in the background. There need not be any.
func deleteMedia(c *call) (answer, error) {
	if err := c.needs(minorAttach); err != nil {
		return nothing(err)
	}
	n, err := c.unlocked()
	if err != nil {
		return nothing(err)
	}
	n.state.lastError = ""
	c.i.beside(n, func(o *operation) error {
		if err := o.look((*Machine).eject); err != nil {
			return o.complain("Could not detach devices from node %s: %s", o.n.uuid, err)
		}
		return nil
	})
	return done(http.StatusNoContent)
}
