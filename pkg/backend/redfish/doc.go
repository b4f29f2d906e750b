// Package redfish is the backend that speaks to BMCs itself: registration,
// inspection out of band in seconds, live ISO images through virtual media,
// and power. It needs no Ironic and keeps no records: all that it knows it
// reads from the BMC.
//
// Disk images, RAID, cleaning and firmware it cannot do, and says so, naming
// the backend that can.
package redfish
