// Package kubetest is a small Kubernetes API over HTTP for tests: namespaces,
// Secrets, Events, Leases, BareMetalHosts and HardwareData, with what matters
// to who writes them at the same time: resource versions and conflicts,
// generations, the status subresource, finalizers and deletion, merge and
// strategic patches, watches, and metadata alone. It validates nothing and
// authorises everybody.
//
// It passes the suite of Conform, as a real API server does.
package kubetest
