package conform

import (
	"strings"
	"testing"

	"github.com/metalbus/metalbus/pkg/ironic/ironictest"
)

// aCase is one case of the suite.
type aCase struct {
	name string
	// short marks what a quick look at an Ironic should try.
	short bool
	// alone marks what disturbs others.
	alone bool
	run   func(c *session)
}

// Run runs the whole suite.
func Run(t *testing.T, lab Lab) {
	t.Helper()
	run(t, lab, func(aCase) bool { return true })
}

// RunShort runs the cases that no Ironic does without: a host's life from nothing
// to deployed and back, in its variants.
func RunShort(t *testing.T, lab Lab) {
	t.Helper()
	run(t, lab, func(x aCase) bool { return x.short })
}

func run(t *testing.T, lab Lab, wanted func(aCase) bool) {
	t.Helper()
	t.Run("together", func(t *testing.T) {
		for _, x := range cases() {
			if wanted(x) && !x.alone {
				t.Run(x.name, func(t *testing.T) {
					t.Parallel()
					x.run(lab.session(t, x.name))
				})
			}
		}
	})
	for _, x := range cases() {
		if wanted(x) && x.alone {
			t.Run(x.name, func(t *testing.T) { x.run(lab.session(t, x.name)) })
		}
	}
}

func (l Lab) session(t *testing.T, name string) *session {
	t.Helper()
	return &session{TB: t, Lab: l, version: "latest", base: "suite~" + strings.ReplaceAll(name, " ", "-") + "-"}
}

func cases() []aCase {
	return []aCase{
		{name: "versions are negotiated", run: versions},
		{name: "errors have a form", run: errorForms},
		{name: "nodes are created", run: creation},
		{name: "ports are created", run: ports},
		{name: "nodes are patched", run: patching},
		{name: "listings have pages", run: paging},
		{name: "wrong verbs are refused", run: wrongVerbs},
		{name: "BMCs are verified", run: verification},
		{name: "agents inspect", short: true, run: agentInspection},
		{name: "BMCs are inspected", run: bmcInspection},
		{name: "inspections fail", run: failedInspection},
		{name: "nodes are cleaned by hand", run: manualCleaning},
		{name: "cleaning fails", run: failedCleaning},
		{name: "cleaning is aborted", run: abortedCleaning},
		{name: "a whole life", short: true, run: wholeLife},
		{name: "deployments fail", run: failedDeployment},
		{name: "deployments are aborted", run: abortedDeployment},
		{name: "live images and custom deployments", short: true, run: otherDeployments},
		{name: "rebuild", run: rebuild},
		{name: "adoption", short: true, run: adoption},
		{name: "nodes are deleted", run: deletion},
		{name: "power is changed", short: true, run: power},
		{name: "power off is disabled", run: disabledPowerOff},
		{name: "BMCs are lost and found", run: lostBMC},
		{name: "what others do to power is seen", run: foreignPower},
		{name: "locked nodes", run: lockedNode},
		{name: "boot devices are asked for", run: bootDevice},
		{name: "service", short: true, run: servicing},
		{name: "service fails", run: failedServicing},
		{name: "firmware is updated", run: firmware},
		{name: "RAID by the BMC", run: bmcRAID},
		{name: "RAID by the agent", run: softwareRAID},
		{name: "virtual media", run: virtualMedia},
		{name: "subscriptions", run: subscriptions},
		{name: "protected nodes", run: protected},
		{name: "the database is lost", alone: true, run: lostDatabase},
	}
}

// The releases, in short.
const (
	r21 = ironictest.Ironic21
	r29 = ironictest.Ironic29
	r39 = ironictest.Ironic39
)
