// Package kube is the door to the Kubernetes API: the hosts as they were last
// seen, the metadata of the Secrets that they name, the content of one Secret
// at a time, and the few kinds of writes that metalbus makes. It is the only
// importer of controller-runtime and client-go.
//
// It decides nothing about a host. Watches are nudges, as events on the bus
// are: whoever is told looks at what is there now. Writes are small patches
// that touch our own keys only, since others write the same objects at the
// same time.
//
// An object that the package hands out is shared: it is read, never changed.
package kube
