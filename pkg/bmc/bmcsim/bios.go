package bmcsim

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
)

// current are the firmware settings in force. The caller holds h.mu.
func (h *Host) current() obj {
	all := h.defaults()
	maps.Copy(all, h.settings)
	return all
}

func (h *Host) defaults() obj {
	all := obj{}
	for _, a := range h.shape.bios {
		all[a.name] = a.value
	}
	return all
}

func (p *profile) registryID() string {
	return "BiosAttributeRegistry" + p.name + ".v1_0_0"
}

func getBios(c *call) answer {
	h := c.host
	h.mu.Lock()
	defer h.mu.Unlock()
	b := c.resource("Bios.v1_2_0.Bios", "Bios", "BIOS Configuration Current Settings")
	b["AttributeRegistry"], b["Attributes"] = h.shape.registryID(), h.current()
	b["Actions"] = obj{"#Bios.ResetBios": obj{"target": c.system("Bios", "Actions", "Bios.ResetBios")}}
	b["@Redfish.Settings"] = obj{
		"@odata.type": "#Settings.v1_3_1.Settings", "SettingsObject": link{c.system("Bios", h.shape.pendingBIOS)}, "SupportedApplyTimes": []string{"OnReset"},
	}
	return ok(b)
}

func getPendingBios(c *call) answer {
	h := c.host
	if c.id(1) != h.shape.pendingBIOS {
		return missing(root + "/" + c.path)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	b := c.resource("Bios.v1_2_0.Bios", h.shape.pendingBIOS, "BIOS Configuration Pending Settings")
	pending := maps.Clone(h.pending)
	if pending == nil {
		pending = obj{}
	}
	b["AttributeRegistry"], b["Attributes"] = h.shape.registryID(), pending
	return ok(b)
}

func patchPendingBios(c *call) answer {
	h := c.host
	if c.id(1) != h.shape.pendingBIOS {
		return missing(root + "/" + c.path)
	}
	var in struct{ Attributes map[string]any }
	if a, readable := c.body(&in); !readable {
		return a
	}
	args := map[string]string{}
	for k, v := range in.Attributes {
		args[k] = fmt.Sprint(v)
		if a := h.shape.attribute(k); a != nil && a.kind == "Password" {
			args[k] = "(hidden)"
		}
	}
	c.note("SetBios", args)
	for _, k := range slices.Sorted(maps.Keys(in.Attributes)) {
		if a, bad := h.shape.checkSetting(k, in.Attributes[k]); bad {
			return a
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pending == nil {
		h.pending = map[string]any{}
	}
	maps.Copy(h.pending, in.Attributes)
	h.touch()
	return done()
}

func (p *profile) attribute(name string) *attribute {
	for i := range p.bios {
		if p.bios[i].name == name {
			return &p.bios[i]
		}
	}
	return nil
}

// checkSetting holds a wanted setting against the registry.
func (p *profile) checkSetting(name string, v any) (answer, bool) {
	a := p.attribute(name)
	switch {
	case a == nil:
		return refuse(http.StatusBadRequest, "PropertyUnknown", "The property "+name+" is not in the list of valid properties for the resource.", name), true
	case a.readOnly:
		return refuse(http.StatusBadRequest, "PropertyNotWritable", "The property "+name+" is a read only property and cannot be assigned a value.", name), true
	case !a.takes(v):
		return refuse(http.StatusBadRequest, "PropertyValueNotInList", fmt.Sprintf("The value %v for the property %s is not in the list of acceptable values.", v, name), name), true
	default:
		return answer{}, false
	}
}

func (a *attribute) takes(v any) bool {
	switch a.kind {
	case "Enumeration":
		s, isText := v.(string)
		return isText && slices.Contains(a.allowed, s)
	case "Integer":
		n, isNumber := v.(float64)
		return isNumber && n == float64(int(n)) && int(n) >= a.low && int(n) <= a.high
	case "Boolean":
		_, isBool := v.(bool)
		return isBool
	default:
		s, isText := v.(string)
		return isText && len(s) >= a.low && len(s) <= a.high
	}
}

func postResetBios(c *call) answer {
	c.note("ResetBios", nil)
	c.host.mu.Lock()
	defer c.host.mu.Unlock()
	c.host.pending = c.host.defaults()
	c.host.touch()
	return done()
}

func (c *call) registries() []string {
	if c.host != nil {
		return []string{c.host.shape.registryID()}
	}
	var ids []string
	for _, h := range c.sim.owners(c.key) {
		if id := h.shape.registryID(); !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

func getRegistries(c *call) answer {
	return c.collection("MessageRegistryFile", "Registry File Collection", c.registries()...)
}

func getRegistryFile(c *call) answer {
	if !slices.Contains(c.registries(), c.id(0)) {
		return missing(root + "/" + c.path)
	}
	b := c.resource("MessageRegistryFile.v1_1_3.MessageRegistryFile", c.id(0), "BIOS Attribute Registry File")
	b["Registry"], b["Languages"] = c.id(0), []string{"en"}
	b["Location"] = []obj{{"Language": "en", "Uri": c.at("Registries", c.id(0), "registry")}}
	return ok(b)
}

func getRegistry(c *call) answer {
	for _, name := range append(Profiles(), Plain) {
		if p := findProfile(name); p.registryID() == c.id(0) && slices.Contains(c.registries(), c.id(0)) {
			return ok(p.registryBody())
		}
	}
	return missing(root + "/" + c.path)
}

func (p *profile) registryBody() obj {
	entries := make([]obj, 0, len(p.bios))
	for _, a := range p.bios {
		e := obj{"AttributeName": a.name, "DisplayName": a.name, "Type": a.kind, "ReadOnly": a.readOnly, "ResetRequired": true}
		switch a.kind {
		case "Enumeration":
			var values []obj
			for _, v := range a.allowed {
				values = append(values, obj{"ValueName": v, "ValueDisplayName": v})
			}
			e["Value"] = values
		case "Integer":
			e["LowerBound"], e["UpperBound"] = a.low, a.high
		case "String", "Password":
			e["MinLength"], e["MaxLength"] = a.low, a.high
		}
		entries = append(entries, e)
	}
	return obj{
		"@odata.type": "#AttributeRegistry.v1_3_6.AttributeRegistry", "Id": p.registryID(), "Name": "BIOS Attribute Registry", "Language": "en", "OwningEntity": p.manufacturer,
		"RegistryVersion": "1.0.0", "RegistryEntries": obj{"Attributes": entries},
	}
}
