// Package service is the frame that every program of metalbus stands in:
// signals, settings, logger, tracer, health, metrics and the exit code. It
// knows nothing of hosts.
//
// A service is written as a function over a Frame, so the same function runs
// alone in its own program and beside others in one process. The package has
// no global state, and a service must have none either.
package service
