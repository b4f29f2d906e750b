// Package lifecycle is the life of a bare-metal host as rules and tables: which
// state a host is in, which facts may be recorded in it, what they change, and
// how all of it reads as a BareMetalHost's status. Every service asks it, so
// all agree.
//
// It is pure. It knows no bus, no cluster, no clock and no randomness: time
// comes in as an argument.
package lifecycle
