// Package slots bounds how many long operations a backend is asked for at once,
// and is fair to those that have to wait: within a namespace it is first come,
// first served, and namespaces take turns.
//
// A [Queue] stands between the bus and a stage service, around the service's own
// Step. A step that would begin an operation is let through if there is a slot for
// it; else the host is recorded to wait, with its place. A host that waits is asked
// nothing of the outside, and goes another way at once if it is deleted or asked
// for something else.
//
// What is held and who waits is one small document for each backend, changed by
// compare-and-swap, so that any number of replicas share it. It is only a guess at
// the truth, which is in the hosts: whoever holds a slot without being at work, or
// waits without wanting to, is weeded out when somebody else needs the place. So
// nothing is stuck after a crash, and losing the document loses only the order.
package slots
