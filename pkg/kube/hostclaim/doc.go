// Package hostclaim gives HostClaims their hosts and takes them back.
//
// A claim gets a free host that fits its selector, out of the namespaces whose
// HostDeployPolicy lets it in. That takes three writes, each on the condition
// that nobody else has written the object meanwhile: the claim notes its choice,
// the host notes its consumer, the claim's status says so. Since the choice
// comes first, and is made once for a claim whoever makes it, a claim never gets
// a second host, be the caches as old as they like and be two replicas at work.
// Since a host is written only while it has no consumer, it never gets a second
// claim.
//
// The package binds and does no more: what a claim wants of its host is not
// brought there, and the claim says so.
package hostclaim
