// Package ironictest plays an Ironic in one process: its HTTP API with the rules,
// errors and states of the real one, a conductor that takes nodes through them,
// and the machines behind it, held in memory. It is what unit tests, stories and
// benchmarks use in place of an Ironic with hardware; the suite in
// integration/ironic holds it to what real Ironics do.
//
// An [Ironic] answers as one of the releases that are known ([Release]), with
// that release's API versions and peculiarities. A [Rack] holds the machines. It
// outlives any Ironic, so that a test can lose the database ([Ironic.Forget]) or
// start another Ironic over the same machines, and then ask each machine what was
// done to it ([Machine.Acts]).
//
// Things take time by timers that [Delays] sets, and work in a synctest bubble
// too. Trouble comes in three places: of a machine or its BMC ([Faults]), of one
// request or many ([Ironic.Inject], [Ironic.SetChaos]), and of the conductor
// ([Ironic.Strand], [Ironic.Force]).
//
// What our client never asks for is not there: rescue, holds, runbooks,
// allocations, port groups, volumes, and the agents' own API.
package ironictest
