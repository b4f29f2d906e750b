// Package realagent holds one slow story with the real ironic-python-agent: a
// machine is inspected, cleaned and deployed by a real Ironic, its processor being a
// container, its disk a file on a loop device. It needs root, a container engine on
// the same machine, and minutes: make integration-agent.
package realagent
