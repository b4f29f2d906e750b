// Package bmcsim plays the baseboard management controllers of many machines:
// a Redfish service in one process, with the machines behind it, their power,
// media, firmware settings and faults. It is what tests, demonstrations and
// benchmarks use in place of a rack.
//
// A [Sim] answers for all its hosts at one address ([Sim.Handler]). There a host
// is told by its system path, /redfish/v1/Systems/<id>, or by whose credentials
// were given: a session sees the systems that its credentials open, and no
// other. A host can also answer alone, at an address of its own and with the ids
// that its vendor uses ([Host.Handler]); then its faults hold for every path.
//
// The bodies of resources are made when they are asked for, so that a host costs
// a few kilobytes. Whatever takes time does so by a timer, never by a loop. The
// simulator makes no network connection but to the receivers of event
// subscriptions, unless [Config.Images] tells it to fetch images.
//
// What a machine does after it has chosen what to boot is not this package's:
// [Config.Boot] plugs in whatever plays an operating system or an agent.
package bmcsim
