// Package event is the contract between the services of metalbus, and between
// metalbus and anyone who subscribes to it: which CloudEvents there are, what
// their attributes mean, and what their data holds.
//
// The life of a host is told in five sections, and each section is written by
// one service only. An event says in the past tense what happened, and carries
// the whole new state of its section, so that the newest event of each section
// is the state of the host. Nothing on the bus is a command.
//
// The package knows no bus and decides nothing: pkg/lifecycle does.
package event
