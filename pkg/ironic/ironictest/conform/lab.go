package conform

import (
	"testing"
	"time"

	"github.com/metalbus/metalbus/pkg/ironic/ironictest"
)

// Lab is an Ironic with machines, for the suite to try.
type Lab struct {
	// URL is the address of the API, without a slash and without /v1.
	URL     string
	Release ironictest.Release
	// Files is the address below which images are: see the constants.
	Files string
	// Machine gives a machine that no other case has: off, with an empty disk.
	Machine func(t testing.TB) Machine
	// Lose empties Ironic's database, and waits until it is ready again. Machines
	// stay as they are.
	Lose func(t testing.TB)
	// Poll is the time between two looks at a node, Patience how long one may take
	// to get where it should.
	Poll, Patience time.Duration
}

// The images below Lab.Files.
const (
	DiskImage = "/disk.raw"
	DiskSum   = "/disk.raw.sha256sum"
	BadSum    = "/bad.raw.sha256sum" // of another image
	AgentISO  = "/agent.iso"
	LiveISO   = "/live.iso"
	DataISO   = "/data.iso"
	Missing   = "/no-such-image" // is not there
	BIOS2     = "/bios-2.0.0.bin"
	BMC2      = "/bmc-2.1.0.bin"
)

// DeadServer is the address of a server that is down.
const DeadServer = "http://127.0.0.1:1"

// Setting is a BIOS setting that all machines have, with the values Disabled, which
// is the first, and Enabled.
const Setting = "SriovGlobalEnable"

// Machine is one machine of a lab.
type Machine interface {
	// Access is what a node has to know of it.
	Access() Access
	// Look tells how it stands.
	Look(t testing.TB) Look
	// Fault puts misbehaviours in force in place of all earlier ones.
	Fault(t testing.TB, f Fault)
	// Change meddles with it.
	Change(t testing.TB, c Change)
}

// Access is what a node has to know of a machine.
type Access struct {
	Info map[string]any // driver_info, without images
	MACs []string       // the first one is that of the boot port
}

// Look is how a machine stands.
type Look struct {
	On       bool
	Runs     string // ironictest.RunsAgent, RunsDisk, RunsISO or RunsNothing
	Disk     string // address of the image on its disk
	Drive    bool   // there is a config drive beside the image
	Writes   int    // of images
	Erases   int
	CD       bool // there is an image in its virtual drive
	Boots    int
	Setting  string // the value of Setting
	Firmware map[string]string
	Volumes  int
	Changes  int // everything that was ever done to it
}

// Fault is the misbehaviours of a machine and its BMC.
type Fault struct {
	Down        bool // the BMC does not answer
	Slow        bool // it answers so late that its node is seen to be locked
	RefusePower bool
	NoBoot      bool
	FailMedia   bool
	FailUpdate  bool
	FailInspect string // what the agent reports
	FailClean   string // name of a step
	FailDeploy  string
	FailService string
	LongSteps   bool // steps take very long
}

// Change meddles with a machine; what is empty stays.
type Change struct {
	Password string // of the BMC
	Health   string
	Power    string // "on" or "off", as by somebody else
}
