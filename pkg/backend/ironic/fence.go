package ironic

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/metalbus/metalbus/pkg/ironic"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// opMark is the mark of the operation under way, in the log that it is in.
func opMark(h lifecycle.Host) string {
	op, _ := h.Op()
	if op == nil {
		return ""
	}
	return h.Epoch + "/" + op.ID
}

// marked reports whether this operation has changed the node: one that was made
// anew meanwhile is not.
func (v view) marked() bool {
	mark, _ := v.node.Extra[markOp].(string)
	return mark != "" && mark == opMark(v.host)
}

// fence is the error of a write that comes too late, or to a node that is another
// host's by now. Nothing is to be written then, and the host is to be looked at
// again.
func fence(n ironic.Node, h lifecycle.Host) error {
	if foreign(n, h) {
		mark, _ := n.Extra[markHost].(string)
		return fmt.Errorf("node %s belongs to the host with uid %s by now: another object of the same name, perhaps in another cluster, manages it: %w", n.UUID, mark, lifecycle.ErrBusy)
	}
	mark, _ := n.Extra[markOp].(string)
	epoch, id, ok := strings.Cut(mark, "/")
	op, _ := h.Op()
	if !ok || op == nil || epoch != h.Epoch {
		return nil
	}
	if revision(id) > revision(op.ID) {
		return fmt.Errorf("node %s was changed by operation %s, which is newer than %s: %w", n.UUID, id, op.ID, lifecycle.ErrBusy)
	}
	return nil
}

// revision is the host's revision at which an operation began, which is at the end
// of its id.
func revision(id string) uint64 {
	n, err := strconv.ParseUint(id[strings.LastIndexByte(id, '-')+1:], 10, 64)
	if err != nil {
		return 0
	}
	return n
}
