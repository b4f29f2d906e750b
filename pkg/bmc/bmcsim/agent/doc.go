// Package agent plays ironic-python-agent on simulated machines, so that a real
// Ironic can inspect, clean, deploy and service them. A [Fleet] plugs into the
// simulator's boot hook: whatever machine boots an image that names an Ironic
// (ipa-api-url=...) runs an agent from then on, until it loses its power.
//
// An agent speaks the protocol of agent version 13 against Ironic 21 and later:
// it reports its inventory, looks itself up, beats, and takes commands at an
// address of its own below the fleet's. What it writes is no disk but an entry in
// the fleet's books ([Fleet.Disk]), for which it really downloads the image and
// checks it.
package agent
