// Package hostwish deals with the objects beside a BareMetalHost by which its
// user asks something of the machine: a DataImage is to be in its virtual CD
// drive, a BMCEventSubscription has its BMC send events. It reads from them what belongs into the host's intent, shows on them
// what became of it, and lets them go when nothing is left to be undone.
//
// It does nothing to a machine and decides nothing about one: that is done by
// the services that follow the intent.
package hostwish
