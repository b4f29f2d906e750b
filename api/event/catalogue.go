package event

// FactInfo is an entry of the catalogue of facts.
type FactInfo struct {
	Section Section
	Name    string
	Meaning string
}

// Facts is the catalogue: every fact that a section can record, in the order
// of the sections. Readers must bear with types that are not in it.
func Facts() []FactInfo {
	facts := []FactInfo{
		{SectionIntent, Created, "A BareMetalHost is new on the bus."},
		{SectionIntent, Changed, "Its specification, or a Secret that it names, changed."},
		{SectionIntent, Paused, "It was paused: nothing is read from the host or done to it."},
		{SectionIntent, Unpaused, "It is no longer paused."},
		{SectionIntent, DetachAsked, "Its user wants it out of the backend, untouched."},
		{SectionIntent, AttachAsked, "Its user wants it back in the backend."},
		{SectionIntent, Deleting, "It is being deleted."},
		{SectionIntent, Restored, "It was rebuilt from the object's own status."},
		{SectionIntent, Forgotten, "The object is gone."},
		{SectionIntent, RetryRequested, "Its user asked to try again now."},
		{SectionIntent, RebootRequested, "Its user asked for a reboot."},
		{SectionIntent, InspectRequested, "Its user asked for another inspection."},
	}
	for _, k := range Kinds() {
		for _, p := range phases() {
			facts = append(facts, FactInfo{k.Section(), k.Fact(p), k.meaning() + ": " + p.meaning()})
		}
		if more, last := plainFacts()[k]; last {
			facts = append(append(facts, more...), troubles(k.Section())...)
		}
	}
	return facts
}

// Kinds lists the operations in the order of their sections.
func Kinds() []Kind {
	return []Kind{Enroll, Adopt, Detach, Remove, Inspect, Prepare, Deploy, Undeploy, Media, Service, PowerOn, PowerOff, Reboot, Subscribe}
}

func phases() []Phase {
	return []Phase{Started, Claimed, Accepted, Resumed, Succeeded, Failed, Aborted}
}

// plainFacts are the facts that belong to no operation, listed behind the
// last operation of their section.
func plainFacts() map[Kind][]FactInfo {
	return map[Kind][]FactInfo{
		Remove: {
			{SectionRegistration, CredentialsRotated, "New credentials of a registered host were checked and work."},
			{SectionRegistration, NodeLost, "The backend no longer knows the host."},
		},
		Inspect: {
			{SectionInspection, InspectBegun, "Another inspection is at hand, and nothing was written for it yet."},
			{SectionInspection, SlotAwaited, "The host waits for a slot to be inspected in."},
			{SectionInspection, InspectSkipped, "Inspection is disabled."},
			{SectionInspection, DetailsSupplied, "The user gave the hardware details."},
		},
		Service: {
			{SectionProvisioning, PrepareBegun, "Settings are to be applied, and nothing was written for it yet."},
			{SectionProvisioning, DeployBegun, "An image is to be brought to the host, and nothing was written for it yet."},
			{SectionProvisioning, UndeployBegun, "The image is to go, and nothing was written for it yet."},
			{SectionProvisioning, ExternalEntered, "The disk is somebody else's from now on."},
			{SectionProvisioning, ExternalLeft, "The disk is ours again, with the image that the specification names."},
			{SectionProvisioning, UndeployAbandoned, "The host had to go before it could be cleaned."},
			{SectionProvisioning, SlotAwaited, "The host waits for a provisioning slot."},
			{SectionProvisioning, FirmwareSeen, "The firmware of a host at rest was read, or could not be."},
			{SectionProvisioning, AttemptsReset, "Failed attempts no longer count, since the image changed or went."},
		},
		Subscribe: {
			{SectionPower, PowerChanged, "The host was found on, or off."},
			{SectionPower, RebootServed, "The host was off already when a reboot was asked for."},
			{SectionPower, OffAbandoned, "The host had to go before it could be powered off."},
			{SectionPower, FaultChanged, "The backend lost control of the host's power, or has it again."},
			{SectionPower, HealthChanged, "The hardware's own health report changed."},
			{SectionPower, MaintenanceChanged, "Somebody had the backend leave the host alone, or ended that."},
			{SectionPower, StateChanged, "Somebody brought the host to a state of the backend that is not such a host's, or back."},
		},
	}
}

// troubles are the facts about trouble that is not the host's own.
func troubles(s Section) []FactInfo {
	return []FactInfo{
		{s, Stalled, "What the host waits for, such as its backend, has not answered for minutes."},
		{s, Recovered, "It answers again."},
	}
}

func (k Kind) meaning() string {
	return map[Kind]string{
		Enroll: "Making the host a node of its backend", Adopt: "Taking a running host over again",
		Detach: "Taking the node out of its backend, machine untouched", Remove: "Taking the node out of its backend for good",
		Inspect: "Learning the hardware", Prepare: "Applying RAID and firmware settings", Deploy: "Bringing the image to the host",
		Undeploy: "Taking the image off and cleaning", Media: "Bringing the virtual CD of a host in use to what is wanted", Service: "Changing firmware or settings of a host in use",
		PowerOn: "Switching on", PowerOff: "Switching off", Reboot: "Restarting without power-off", Subscribe: "Making, or ending, a subscription to the BMC's events",
	}[k]
}

func (p Phase) meaning() string {
	return map[Phase]string{
		Started: "begun; its first write to the outside is claimed.", Claimed: "a further write is claimed.",
		Accepted: "the claimed write was answered.", Resumed: "taken up again.", Succeeded: "done.",
		Failed: "a problem; it is tried again later.", Aborted: "given up, no longer wanted.",
	}[p]
}
