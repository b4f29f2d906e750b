// Package assembly puts services together: their settings as flags, the bus,
// Kubernetes' Secrets and the backends. Mains use it, so that a service that
// runs alone and one that runs beside others are the same service.
//
// It is above the adapters and below the mains; no service imports it.
package assembly
