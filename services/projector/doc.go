// Package projector stands between Kubernetes and the bus. One replica turns
// BareMetalHosts into intents; every replica shows on BareMetalHosts what the
// bus knows. It is the only writer of the intent section, and of a host's
// status, conditions, finalizers, status annotation and HardwareData.
//
// Both ways have a pure core, which is tested without either side: intentOf
// and factOf say what an object asks, baseOf what a status remembers, and
// pictures which statuses show a sequence of revisions.
//
// Three rules hold whatever happens. Each state of a host is shown once and in
// order. A machine that is in use is never shown in another state than
// provisioned or externally provisioned. And what is paused or on its way to
// another cluster is left alone.
package projector
