// Package bus is where the services of metalbus meet: it keeps the log of every
// host in NATS JetStream, and runs the services' work by it.
//
// An event is a nudge, never an order. Serve takes a trigger, loads the host as
// it is now, asks the service for its next step and carries it out. Everything
// that makes this safe is done here and nowhere else: each append is a
// compare-and-swap on the whole host, a write to the outside is claimed by an
// append first and made within a short window after it, and what was left
// hanging by a crash comes back by redelivery.
//
// A lifecycle.Host that the bus hands out shares memory with others: it is read,
// never changed in place.
//
// The package decides nothing about a host, and knows no backend and no
// Kubernetes. It is the only importer of NATS.
package bus
