// Package preprov keeps the PreprovisioningImages of hosts: one for each, of its
// name, that says what the ramdisk of the host must be like. Somebody builds the
// image and says in its status where it lies; from that the package says what a
// host is to boot. If it is told where ramdisks lie that serve all hosts, it
// answers for them itself.
//
// It builds no image, and does nothing to a machine.
package preprov
