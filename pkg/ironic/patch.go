package ironic

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"
)

// Patch is a list of changes of a node, made together or not at all.
type Patch []Change

// Change sets the value at a path, or removes what is there.
type Change struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// Set adds or replaces the value at a path.
func (p *Patch) Set(path string, value any) {
	*p = append(*p, Change{Op: "add", Path: path, Value: value})
}

// Remove removes what is at a path. It must be there.
func (p *Patch) Remove(path string) { *p = append(*p, Change{Op: "remove", Path: path}) }

// Match adds what makes the present value the wanted one: nothing if they are the
// same, a removal if nil is wanted and something is there.
func (p *Patch) Match(path string, present, wanted any) {
	switch {
	case wanted == nil && present != nil:
		p.Remove(path)
	case wanted != nil && !Same(present, wanted):
		p.Set(path, wanted)
	}
}

// MatchKeys does so for each key of wanted in the object at path. Other keys stay.
func (p *Patch) MatchKeys(path string, present, wanted map[string]any) {
	for _, key := range sortedKeys(wanted) {
		p.Match(path+"/"+escape(key), present[key], wanted[key])
	}
}

// escape makes a key a part of a JSON pointer.
func escape(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

// Same reports whether two values are the same in JSON.
func Same(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

func (p Patch) options() nodes.UpdateOpts {
	var all nodes.UpdateOpts
	for _, c := range p {
		all = append(all, nodes.UpdateOperation{Op: nodes.UpdateOp(c.Op), Path: c.Path, Value: c.Value})
	}
	return all
}
