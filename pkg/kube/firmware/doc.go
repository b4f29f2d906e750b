// Package firmware does what the projector does for the kinds of firmware:
// HostFirmwareSettings, FirmwareSchema, HostFirmwareComponents and
// HostUpdatePolicy. It shows on them what was read of a host's firmware, says
// what is wrong with what users want of it, and finds what is left to change:
// that becomes a part of the host's intent. It touches no machine.
package firmware
