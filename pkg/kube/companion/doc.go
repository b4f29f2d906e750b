// Package companion does what the projector does for the kinds beside
// BareMetalHost that need no backend: it gives HostClaims their hosts, writes
// BareMetalSwitches into the configuration of the service that sets switch
// ports, keeps PreprovisioningImages, and says on objects whose wishes nobody
// carries out that it is so.
// docs/adr/0007-companion-kinds.md says which kind is whose.
package companion
