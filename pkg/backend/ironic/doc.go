// Package ironic is the backend that has an Ironic do the work: registration,
// inspection by an agent or out of band, RAID and firmware, images of every kind,
// cleaning, and power.
//
// Each operation is a table: the state of the node and what is wanted give what
// comes next. The tables are the files named after the operations, and are pure:
// [Backend.Look] reads the node, and says what the table says; [Backend.Do] makes
// the one write that it asked for. Nothing is remembered between two looks, so any
// replica may go on where another stopped.
//
// What the tables hold to, whatever Ironic says:
//
//   - A machine in use is not touched unless its user asks for it: no verb that
//     would power it off or write to it is given, nodes in use are protected
//     against others, and a rebuild is never asked for.
//   - A text is not a verdict. Whether something failed is told by the node's
//     state, by its fault, and by what was asked before; last_error and the history
//     only say why.
//   - A node that is stuck has a way out after some time, which for nodes that carry
//     no machine in use may be to delete and enrol them anew.
//   - What this Ironic is too old for is refused for the host that asks for it,
//     with the version that is needed.
//
// A node is called <namespace>~<name>, and its UUID is the host's identity here.
// In its extra are the host's uid, the version of the credentials that it was
// given, and the operation that last changed it: who comes late, with an older
// operation or as another object of the same name, finds that out before it
// writes.
package ironic
