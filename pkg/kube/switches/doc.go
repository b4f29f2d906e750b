// Package switches writes BareMetalSwitches into the configuration from which a
// backend sets switch ports: for each namespace one Secret with a file that
// lists its switches, and one with the private keys to log in by. Both Secrets
// are made by whoever runs that backend, and are only filled here.
//
// A switch whose login can not be had is left out, and says why; the others are
// not held up by it.
package switches
