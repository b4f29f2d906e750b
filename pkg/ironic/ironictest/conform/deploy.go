package conform

import (
	"net/http"
	"strings"

	"github.com/metalbus/metalbus/pkg/ironic/ironictest"
)

func wholeLife(c *session) {
	m := c.Machine(c)
	u := c.managed(m, "a", nil)
	c.verb(u, "provide", nil)
	c.fields(c.until(u, "available"), obj{"power_state": "power off", "maintenance": false, "target_provision_state": nil})
	if v := m.Look(c); v.Erases != 1 || v.On {
		c.Errorf("cleaned: %+v", v)
	}
	c.denied(http.StatusBadRequest, "instance_info.image_source", u, "active", nil)
	c.image(u, DiskSum)
	instance := "22222222-2222-3333-4444-" + strings.ReplaceAll(u, "-", "")[:12]
	c.patch(u, "/instance_uuid", instance)
	c.verb(u, "active", obj{"configdrive": obj{"meta_data": obj{"name": "a"}, "user_data": "#cloud-config\n"}})
	c.refused(http.StatusConflict, "", http.MethodPatch, "/v1/nodes/"+u, changes("/extra/a", 1))
	n := c.until(u, "active")
	c.fields(n, obj{"power_state": "power on", "instance_uuid": instance, "target_provision_state": nil, "maintenance": false})
	info, _ := n["instance_info"].(obj)
	if info["configdrive"] != "******" || info["image_source"] != c.Files+DiskImage {
		c.Errorf("instance_info is %v: the config drive should be hidden, the image stay", info)
	}
	if v := m.Look(c); !v.On || v.Runs != ironictest.RunsDisk || v.Disk != c.Files+DiskImage || !v.Drive || v.CD || v.Writes != 1 {
		c.Errorf("deployed: %+v", v)
	}
	c.denied(http.StatusBadRequest, "can not be performed", u, "active", nil)
	c.denied(http.StatusBadRequest, "can not be performed", u, "provide", nil)
	c.denied(http.StatusBadRequest, "can not be performed", u, "manage", nil)
	c.refused(http.StatusConflict, "can not have deploy_interface updated", http.MethodPatch, "/v1/nodes/"+u, changes("/deploy_interface", "ramdisk"))
	c.patch(u, "/extra/a", 1)
	c.verb(u, "deleted", nil)
	n = c.until(u, "available")
	c.fields(n, obj{"power_state": "power off", "instance_uuid": nil, "instance_info": obj{}})
	if v := m.Look(c); v.On || v.Disk != "" || v.Erases != 2 {
		c.Errorf("undeployed: %+v", v)
	}
	// newer releases write down what went well, too
	told := strings.Join(c.history(u), "\n")
	for _, text := range []string{"Automated Cleaning completed successfully", "Starting deployment with steps", "Deployment completed successfully"} {
		if strings.Contains(told, text) != c.since(r39) {
			c.Errorf("history says %q: %v", text, !c.since(r39))
		}
	}
	c.verb(u, "manage", nil)
	c.until(u, "manageable")
	c.patch(u, "/automated_clean", false)
	c.verb(u, "provide", nil)
	c.until(u, "available")
	if v := m.Look(c); v.Erases != 2 || v.On {
		c.Errorf("without automated cleaning: %+v", v)
	}
	c.remove(u)
	c.refused(http.StatusNotFound, "could not be found", http.MethodDelete, "/v1/nodes/"+u, nil)
	rows, _ := c.want(http.StatusOK, http.MethodGet, "/v1/ports?address="+m.Access().MACs[0], nil)["ports"].([]any)
	if len(rows) != 0 {
		c.Errorf("the ports outlived their node: %v", rows)
	}
}

func failedDeployment(c *session) {
	m := c.Machine(c)
	u := c.provided(m, "a")
	c.image(u, BadSum)
	c.verb(u, "active", nil)
	c.fields(c.until(u, "deploy failed"), obj{"maintenance": false, "fault": nil, "target_provision_state": "active"})
	c.said(u, "deploy.write_image failed on node "+u)
	if v := m.Look(c); v.Disk != "" {
		c.Errorf("a bad image was written: %+v", v)
	}
	c.refused(http.StatusConflict, "Can not delete node", http.MethodDelete, "/v1/nodes/"+u, nil)
	// an image that is not there
	c.patch(u, "/instance_info/image_source", c.Files+Missing, "/instance_info/image_os_hash_value", strings.Repeat("0", 64))
	c.verb(u, "active", nil)
	c.until(u, "deploy failed")
	c.said(u, c.Files+Missing)
	// and then it works
	c.image(u, DiskSum)
	c.verb(u, "active", nil)
	c.until(u, "active")
	c.verb(u, "deleted", nil)
	c.until(u, "available")
	// a deployment that failed is undone like any other
	c.image(u, DiskSum)
	m.Fault(c, Fault{FailDeploy: "write_image"})
	c.verb(u, "active", nil)
	c.until(u, "deploy failed")
	m.Fault(c, Fault{})
	c.verb(u, "deleted", nil)
	c.until(u, "available")
}

func abortedDeployment(c *session) {
	m := c.Machine(c)
	u := c.provided(m, "a")
	c.image(u, DiskSum)
	m.Fault(c, Fault{NoBoot: true})
	c.verb(u, "active", nil)
	c.when(u, "wait for its agent", func(n obj) bool { return n["provision_state"] == "wait call-back" && n["reservation"] == nil })
	c.refused(http.StatusConflict, "", http.MethodPatch, "/v1/nodes/"+u, changes("/extra/a", 1))
	if c.since(r39) {
		old := *c
		old.version = "1.109"
		old.denied(http.StatusNotAcceptable, "", u, "abort", nil)
		c.verb(u, "abort", nil)
		c.fields(c.until(u, "deploy failed"), obj{"maintenance": false, "fault": nil})
		c.said(u, "By request, the deploy operation was aborted")
		c.verb(u, "active", nil)
		c.when(u, "wait for its agent", func(n obj) bool { return n["provision_state"] == "wait call-back" && n["reservation"] == nil })
	} else {
		c.denied(http.StatusBadRequest, "can not be performed", u, "abort", nil)
	}
	m.Fault(c, Fault{})
	c.verb(u, "deleted", nil)
	c.fields(c.until(u, "available"), obj{"instance_info": obj{}})
}

func otherDeployments(c *session) {
	m := c.Machine(c)
	u := c.provided(m, "a")
	c.patch(u, "/deploy_interface", "ramdisk")
	c.denied(http.StatusBadRequest, "", u, "active", nil) // no image
	c.patch(u, "/instance_info/boot_iso", c.Files+LiveISO)
	c.verb(u, "active", nil)
	c.fields(c.until(u, "active"), obj{"power_state": "power on"})
	if v := m.Look(c); v.Runs != ironictest.RunsISO || !v.CD || v.Writes != 0 {
		c.Errorf("with a live image: %+v", v)
	}
	c.verb(u, "deleted", nil)
	c.until(u, "available")
	c.patch(u, "/deploy_interface", "custom-agent")
	c.verb(u, "active", obj{"deploy_steps": []obj{{"interface": "deploy", "step": "no_such", "priority": 80, "args": obj{}}}})
	c.until(u, "deploy failed")
	c.said(u, "does not support this deploy step")
	c.verb(u, "active", obj{"deploy_steps": []obj{{"interface": "deploy", "step": "install_os", "priority": 80, "args": obj{}}}})
	c.fields(c.until(u, "active"), obj{"power_state": "power on"})
	c.verb(u, "deleted", nil)
	c.until(u, "available")
	if v := m.Look(c); v.Writes != 0 || v.On || v.CD {
		c.Errorf("after a custom deployment: %+v", v)
	}
}

func rebuild(c *session) {
	m := c.Machine(c)
	u := c.deployed(m, "a")
	c.verb(u, "rebuild", obj{"configdrive": obj{"user_data": "again"}})
	c.until(u, "active")
	if v := m.Look(c); v.Writes != 2 || v.Erases != 0 || !v.On {
		c.Errorf("rebuilt: %+v", v)
	}
	// what is never to be used as a repair: it switches the machine off first
	c.patch(u, "/instance_info/image_source", DeadServer+"/disk.raw", "/instance_info/image_os_hash_value", strings.Repeat("0", 64))
	c.verb(u, "rebuild", nil)
	c.until(u, "deploy failed")
	c.said(u, DeadServer+"/disk.raw")
	if v := m.Look(c); v.On {
		c.Errorf("a rebuild from a dead server left the machine on: %+v", v)
	}
}

func adoption(c *session) {
	m := c.Machine(c)
	u := c.deployed(m, "a")
	c.denied(http.StatusBadRequest, "can not be performed", u, "adopt", nil)
	// it is let go of, in maintenance, with everything as it is
	c.maintained(u, "detach")
	c.remove(u)
	before := m.Look(c)
	if !before.On || before.Runs != ironictest.RunsDisk {
		c.Fatalf("let go of: %+v", before)
	}
	variants := map[string][]any{
		"without an image":     nil,
		"with a dead server":   {"/instance_info/image_source", DeadServer + "/disk.raw", "/instance_info/image_checksum", DeadServer + "/sum", "/instance_info/image_disk_format", "raw"},
		"with a dead live ISO": {"/deploy_interface", "ramdisk", "/instance_info/boot_iso", DeadServer + "/live.iso"},
		"without a method":     {"/deploy_interface", "custom-agent"},
	}
	for name, pairs := range variants {
		u := c.managed(m, strings.ReplaceAll(name, " ", "-"), nil)
		if pairs != nil {
			c.patch(u, pairs...)
		}
		c.verb(u, "adopt", nil)
		c.fields(c.until(u, "active"), obj{"power_state": "power on", "maintenance": false, "fault": nil, "last_error": nil})
		if after := m.Look(c); after.Changes != before.Changes || !after.On {
			c.Errorf("adoption %s changed the machine: %+v, was %+v", name, after, before)
		}
		c.maintained(u, "detach")
		c.remove(u)
	}
	u = c.managed(m, "boots-nothing", nil)
	c.patch(u, "/deploy_interface", "ramdisk")
	c.verb(u, "adopt", nil)
	c.until(u, "adopt failed")
	c.said(u, "Missing are: ['kernel', 'ramdisk']")
	c.patch(u, "/instance_info/boot_iso", DeadServer+"/live.iso")
	c.verb(u, "adopt", nil)
	c.until(u, "active")
	c.maintained(u, "detach")
	c.remove(u)
	u = c.managed(m, "dead", nil)
	m.Fault(c, Fault{Down: true})
	c.verb(u, "adopt", nil)
	if c.since(r29) {
		c.fields(c.until(u, "adopt failed"), obj{"power_state": nil, "maintenance": false, "fault": nil})
		c.said(u, "Error while attempting to adopt node "+u)
		m.Fault(c, Fault{})
		c.verb(u, "adopt", nil)
	}
	c.until(u, "active")
	m.Fault(c, Fault{})
	c.when(u, "know its power", func(n obj) bool { return n["power_state"] == "power on" })
	if after := m.Look(c); after.Changes != before.Changes {
		c.Errorf("a second try changed the machine: %+v", after)
	}
}

func lostDatabase(c *session) {
	m := c.Machine(c)
	u := c.deployed(m, "a")
	before := m.Look(c)
	c.Lose(c)
	c.refused(http.StatusNotFound, "could not be found", http.MethodGet, "/v1/nodes/"+u, nil)
	rows, _ := c.want(http.StatusOK, http.MethodGet, "/v1/nodes", nil)["nodes"].([]any)
	if len(rows) != 0 {
		c.Errorf("nodes outlived the database: %v", rows)
	}
	u = c.managed(m, "again", nil)
	c.patch(u, "/instance_info/image_source", DeadServer+"/disk.raw", "/instance_info/image_os_hash_algo", "sha256", "/instance_info/image_os_hash_value", DeadServer+"/sum")
	c.verb(u, "adopt", nil)
	c.fields(c.until(u, "active"), obj{"power_state": "power on"})
	after := m.Look(c)
	if after.Changes != before.Changes || !after.On || after.Disk != before.Disk || after.Boots != before.Boots {
		c.Errorf("the machine is %+v, was %+v", after, before)
	}
}

func deletion(c *session) {
	m := c.Machine(c)
	c.remove(c.create(m, "enrolled", nil))
	c.remove(c.managed(m, "managed", nil))
	c.remove(c.provided(m, "provided"))
	u := c.deployed(m, "deployed")
	path := "/v1/nodes/" + u
	c.refused(http.StatusConflict, `Valid provision states to perform deletion are: "('manageable', 'enroll', 'adopt failed', 'available')"`, http.MethodDelete, path, nil)
	c.refused(http.StatusBadRequest, "force", http.MethodDelete, path+"?force=true", nil)
	instance := "33333333-2222-3333-4444-" + strings.ReplaceAll(u, "-", "")[:12]
	c.patch(u, "/instance_uuid", instance)
	c.refused(http.StatusConflict, "is associated with instance "+instance, http.MethodDelete, path, nil)
	before := m.Look(c)
	c.maintained(u, "detach")
	c.fields(c.get(u), obj{"maintenance": true, "maintenance_reason": "detach", "fault": nil})
	c.remove(u)
	if after := m.Look(c); after.Changes != before.Changes || !after.On || after.Disk == "" {
		c.Errorf("deletion in maintenance changed the machine: %+v, was %+v", after, before)
	}
	// in maintenance also while it waits
	m.Fault(c, Fault{NoBoot: true})
	u = c.managed(m, "waiting", nil)
	c.verb(u, "provide", nil)
	c.when(u, "wait for its agent", func(n obj) bool { return n["provision_state"] == "clean wait" && n["reservation"] == nil })
	c.maintained(u, "")
	c.remove(u)
	if v := m.Look(c); !v.On || !v.CD {
		c.Errorf("deletion while waiting changed the machine: %+v", v)
	}
}

func protected(c *session) {
	m := c.Machine(c)
	u := c.deployed(m, "a")
	c.patch(u, "/protected", true, "/protected_reason", "mine")
	c.denied(http.StatusForbidden, "is protected", u, "deleted", nil)
	c.denied(http.StatusForbidden, "is protected", u, "rebuild", nil)
	c.maintained(u, "")
	c.refused(http.StatusForbidden, "is protected", http.MethodDelete, "/v1/nodes/"+u, nil)
	c.unmaintained(u)
	c.patch(u, "/protected", false)
	if v := m.Look(c); !v.On {
		c.Errorf("the protected machine is %+v", v)
	}
}
