// Package ironic speaks to Ironic, the service that manages machines through
// nodes, in this project's words. It knows the API's requests, versions and
// errors, and nothing of hosts: what is to be done with a node is decided in
// pkg/backend/ironic.
//
// A [Client] is one Ironic. It is made once and shared by everything in a
// process, since it holds what must be shared:
//
//   - The version of the API, negotiated between 1.81 and the newest that both
//     sides know, and kept for minutes. [Version.Needs] says in one error which
//     version a feature needs and which was found.
//   - The budget: how many requests may be under way and how many may begin in a
//     second, and the pause after an Ironic that does not answer or says that it is
//     busy. A broken Ironic slows its own hosts down and nobody else's.
//   - Certificates and credentials, which are read again when their files change.
//
// A [Reader] reads nodes for many callers at once: a few of them by single
// requests, many by one listing. What it returns was asked of Ironic after the
// caller asked, unless the caller says how old it may be.
//
// Errors are of type [*Error]; errors.Is tells their reason by the Err values, and
// "not now" also is lifecycle.ErrBusy. No error holds a credential.
//
// Requests go through gophercloud, and no other package does. Answers are read
// into types of our own, since real answers are looser than gophercloud's types:
// one BIOS setting without a value, say, must not lose all others.
package ironic
