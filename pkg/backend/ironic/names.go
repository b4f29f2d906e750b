package ironic

// The writes that this backend makes, as they stand in an operation's step.
const (
	writeEnroll     = "enroll"     // make the node
	writeRecreate   = "recreate"   // delete a node that never worked, since it was made for another address
	writeUpdate     = "update"     // bring address, credentials and name up to date
	writePorts      = "ports"      // make missing ports
	writeManage     = "manage"     // the verb
	writeProvide    = "provide"    // the verb: automated cleaning
	writeAdopt      = "adopt"      // the verb
	writeInspect    = "inspect"    // the verb
	writeAbort      = "abort"      // the verb
	writeConfigure  = "configure"  // bring ramdisk, boot mode and the like up to date
	writeUnmaintain = "unmaintain" // take the node out of maintenance
	writeClean      = "clean"      // set RAID, give the verb with steps
	writeDeploy     = "deploy"     // say what to deploy, give the verb active
	writeProtect    = "protect"    // protect the node of a machine in use
	writeUndeploy   = "undeploy"   // take the protection off, give the verb deleted
	writeService    = "service"    // the verb with steps
	writeDelete     = "delete"     // delete the node
	writeRecover    = "recover"    // delete a node that is stuck, to make it anew
	writeOn         = "on"
	writeSoft       = "soft"
	writeHard       = "hard"
	writeReboot     = "reboot"
	writeAttach     = "attach" // put an image into the virtual CD drive
	writeDetach     = "detach" // empty the drive
)

// Marks of ours in a node's extra.
const (
	markHost        = "metalbus_host"        // uid of the host that the node is for
	markCredentials = "metalbus_credentials" //nolint:gosec // it holds the version of the credentials that the node was given
	markOp          = "metalbus_op"          // operation that last changed what is on the machine
)

// Reasons that we give Ironic, by which we know what is ours.
const (
	reasonProtected = "metalbus: the machine is in use"
	reasonDelete    = "metalbus: deletion of the node"
	reasonRecover   = "metalbus: the node is stuck, it is deleted and enrolled anew"
	// reasonUpstream is what the operator says that we follow.
	reasonUpstream = "forcing deletion in baremetal-operator"
)
