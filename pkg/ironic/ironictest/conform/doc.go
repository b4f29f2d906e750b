// Package conform is the suite that every Ironic has to pass: the real ones of each
// release, with simulated machines, and the fake of package ironictest. It speaks
// plain HTTP, so that what it proves of the fake it proves without our client.
//
// Where releases differ, a case says what each of them does: what a release lacks
// is asserted as lacking.
package conform
