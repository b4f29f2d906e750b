// Package contained runs a whole installation from our own images, in
// containers whose networks can be cut: a NATS cluster of three, a Kubernetes
// API, a rack of simulated machines and the five services.
package contained
