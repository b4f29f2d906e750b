// Package bmc speaks to baseboard management controllers: Redfish, and IPMI for
// power. It reads power, health and hardware, and commands power, boot source and
// virtual media, in this project's words. Nothing of the libraries below it, and
// no credential, leaves it.
//
// A [Pool] holds what is shared by all BMCs: the bound on connections, sessions,
// and what went wrong lately. [Pool.BMC] gives a handle on one machine, which costs
// nothing to make and nothing to drop.
//
// How BMCs are spared, since they are slow, small and easily locked:
//
//   - One request at a time and one session for each address and credentials (a
//     lane). Machines that share both, such as the nodes of one enclosure, share the
//     lane. A session is kept for some minutes of silence, then logged out. Where
//     there are no sessions, or none is left, basic authentication takes their place.
//   - A login that failed is not tried again with the same address, user name and
//     password in the life of the pool: a wrong password costs one failed login and
//     never locks an account. [Pool.Forget] allows one more.
//   - A BMC that cannot be reached a few times in a row is left alone for a growing
//     while, in which every call is answered at once with the last error.
//   - No request that changes something is sent twice, unless the BMC has answered
//     that it did not carry it out. A connection that breaks before the answer leaves
//     it open whether it did: look at the state, then decide.
//
// Errors are of type [*Error]; errors.Is tells their reason by the Err values. Their
// text says what to do.
//
// Of bmclib's Redfish client nothing could be used: it acts on every system of a
// service that it cannot tell by name, reads all of them for the power of one, and
// follows neither the caller's deadline nor certificates. Redfish is spoken here by
// our own requests, with gofish's knowledge of resources and errors. IPMI goes
// through bmclib, which runs the program ipmitool and cannot do without it.
package bmc
