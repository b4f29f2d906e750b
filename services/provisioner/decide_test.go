package provisioner

import (
	"testing"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

type change = func(*lifecycle.Host)

// host is a registered, inspected, online host with its disk in a phase.
func host(p event.PhaseOfDisk, changes ...change) lifecycle.Host {
	h := lifecycle.Host{UID: "u"}.WithNewest(event.SectionIntent, lifecycle.Meta{Seq: 1, Rev: 1})
	h.Intent.Spec.BMC = v1alpha1.BMCDetails{Address: "redfish://192.0.2.1", CredentialsName: "s"}
	h.Intent.Spec.Online = true
	h.Intent.Credentials = event.SecretRef{Namespace: "lab", Name: "s", Version: "7"}
	h.Registration = event.Registration{Registered: true, Address: h.Intent.Spec.BMC.Address, Good: lifecycle.Credentials(h.Intent)}
	h.Inspection.Done, h.Provisioning.Phase = true, p
	for _, c := range changes {
		c(&h)
	}
	return h
}

// faulty is a host whose specification has a fault.
func faulty(t v1alpha1.ErrorType) change {
	return func(h *lifecycle.Host) { h.Intent.Invalid = &event.Problem{Type: t, Message: "no", Local: true} }
}

func wants(url string) change {
	return func(h *lifecycle.Host) { h.Intent.Spec.Image = &v1alpha1.Image{URL: url} }
}

func has(url string) change { return func(h *lifecycle.Host) { h.Provisioning.Image.URL = url } }

func off(h *lifecycle.Host) { h.Power.On = new(bool) }
func disc(url string) change {
	return func(h *lifecycle.Host) { h.Intent.DataImage = &event.DataImageWish{URL: url} }
}
func inDrive(h *lifecycle.Host) { h.Provisioning.Media.URL = "d" }
func inVain(h *lifecycle.Host)  { h.Provisioning.Media.GivenUp = true }

func leaving(h *lifecycle.Host)  { h.Intent.DeletedAt = now }
func paused(h *lifecycle.Host)   { h.Intent.Paused = true }
func detached(h *lifecycle.Host) { h.Intent.Detached = &event.DetachRequest{} }
func others(h *lifecycle.Host)   { h.Intent.Spec.ExternallyProvisioned = true }
func lost(h *lifecycle.Host)     { h.Registration.Lost = true }
func offline(h *lifecycle.Host)  { h.Intent.Spec.Online = false }
func forced(h *lifecycle.Host)   { h.Intent.ForceDelete = true }
func unreached(h *lifecycle.Host) {
	h.Registration.Problem, h.Registration.Failures = &event.Problem{Message: "no answer", At: now}, 4
}
func rotated(h *lifecycle.Host)     { h.Intent.Credentials.Version = "8" }
func late(h *lifecycle.Host)        { h.Intent.DeletedAt = now.Add(-time.Hour) }
func before(h *lifecycle.Host)      { h.Provisioning.Problem.At = now.Add(-time.Minute) }
func detachedNow(h *lifecycle.Host) { h.Intent.Detached = &event.DetachRequest{Force: true} }
func refused(h *lifecycle.Host) {
	failed(event.Deploy, 1)(h)
	h.Provisioning.Attempts = 0
}
func inspectAgain(h *lifecycle.Host) { h.Intent.InspectRequest = "1" }

// firmware is a wish that may be carried out on a host in use.
func firmware(h *lifecycle.Host) {
	h.Intent.Firmware = &event.FirmwareWish{ID: "r1", Settings: []event.SettingChange{{Name: "Turbo", To: "Disabled"}}, SettingsInUse: true}
}
func handed(h *lifecycle.Host)  { h.Provisioning.Firmware = &event.FirmwareDone{Wish: "r1"} }
func seenOff(h *lifecycle.Host) { h.Power.On, h.Power.SeenAt = new(false), now }

func op(k event.Kind) change {
	return func(h *lifecycle.Host) { h.Provisioning.Op = &event.Op{Kind: k} }
}

func failed(k event.Kind, times int) change {
	return func(h *lifecycle.Host) {
		p := &h.Provisioning
		p.Problem, p.Failures = &event.Problem{Kind: k, Message: "no", At: now}, times
		if k == event.Deploy {
			p.Attempts, p.LastAttempted = times, h.Intent.Spec.Image.DeepCopy()
		}
	}
}

func TestDecide(t *testing.T) {
	for name, c := range map[string]struct {
		host lifecycle.Host
		want string
	}{
		"a host is prepared once it is inspected":            {host(event.Unprepared), "prepare"},
		"it is not prepared with a fault in what that needs": {host(event.Unprepared, faulty(v1alpha1.PreparationError)), "nothing"},
		"it is prepared with a fault in something else":      {host(event.Unprepared, faulty(v1alpha1.ProvisioningError)), "prepare"},
		"it waits for the inspection to be skipped":          {host(event.Unprepared, func(h *lifecycle.Host) { h.Inspection.Done, h.Intent.InspectionDisabled = false, true }), "nothing"},
		"an available host rests":                            {host(event.Prepared), "nothing"},
		"an image is brought to it":                          {host(event.Prepared, wants("a")), "deploy"},
		"not while it is offline":                            {host(event.Prepared, wants("a"), offline), "nothing"},
		"not while it is paused":                             {host(event.Prepared, wants("a"), paused), "nothing"},
		"not while it is detached":                           {host(event.Prepared, wants("a"), detached), "nothing"},
		"not before it is registered again":                  {host(event.Prepared, wants("a"), lost), "nothing"},
		"not before it is inspected again":                   {host(event.Prepared, wants("a"), inspectAgain), "nothing"},
		"an available host becomes somebody else's":          {host(event.Prepared, others), "record external.entered"},
		"an image is not brought with a fault":               {host(event.Prepared, wants("a"), faulty(v1alpha1.ProvisioningError)), "nothing"},
		"changed RAID with a fault is not applied": {host(event.Prepared, faulty(v1alpha1.PreparationError), func(h *lifecycle.Host) {
			h.Intent.Spec.RAID = &v1alpha1.RAIDConfig{SoftwareRAIDVolumes: []v1alpha1.SoftwareRAIDVolume{{Level: "1"}}}
		}), "nothing"},
		"another image with a fault leaves the one that runs": {host(event.Deployed, wants("b"), has("a"), faulty(v1alpha1.ProvisioningError)), "nothing"},
		"no image any more is no fault":                       {host(event.Deployed, has("a"), faulty(v1alpha1.PreparationError)), "undeploy"},
		"a running host with a fault is left alone":           {host(event.Deployed, wants("a"), has("a"), faulty(v1alpha1.RegistrationError)), "nothing"},
		"changed RAID is applied first": {host(event.Prepared, wants("a"), func(h *lifecycle.Host) {
			h.Intent.Spec.RAID = &v1alpha1.RAIDConfig{HardwareRAIDVolumes: []v1alpha1.HardwareRAIDVolume{{Level: "1"}}}
		}), "prepare"},
		"a data image before a boot":                                  {host(event.Deployed, has("a"), wants("a"), off, disc("d")), "media"},
		"a data image of a host that runs":                            {host(event.Deployed, has("a"), wants("a"), disc("d")), "nothing"},
		"a data image of somebody else's disk":                        {host(event.External, others, off, disc("d")), "media"},
		"a data image and the image has to go":                        {host(event.Deployed, has("a"), inDrive), "media"},
		"a data image and the host has to go":                         {host(event.Deployed, has("a"), wants("a"), inDrive, leaving), "media"},
		"a host that goes, and its drive stays full":                  {host(event.Deployed, has("a"), wants("a"), inDrive, inVain, leaving), "undeploy"},
		"a data image and somebody else's host goes":                  {host(event.External, others, inDrive, leaving), "media"},
		"an empty drive and somebody else's host":                     {host(event.External, others, leaving), "nothing"},
		"a data image while the disk is being cleaned":                {host(event.Undeploying, inDrive, op(event.Undeploy)), "undeploy"},
		"a data image on its way when the host goes":                  {host(event.Deployed, has("a"), wants("a"), disc("d"), op(event.Media), leaving), "media"},
		"a data image on its way when it is detached":                 {host(event.Deployed, has("a"), wants("a"), disc("d"), op(event.Media), detachedNow), "record media.aborted"},
		"a failed image is tried again":                               {host(event.Prepared, wants("a"), failed(event.Deploy, 4)), "deploy"},
		"but not for ever":                                            {host(event.Prepared, wants("a"), failed(event.Deploy, 5)), "fail"},
		"another image starts anew":                                   {host(event.Prepared, wants("a"), failed(event.Deploy, 5), wants("b")), "record attempts.reset"},
		"no image any more forgives":                                  {host(event.Prepared, wants("a"), failed(event.Deploy, 5), func(h *lifecycle.Host) { h.Intent.Spec.Image = nil }), "record attempts.reset"},
		"a deployment goes on":                                        {host(event.Deploying, wants("a"), has("a"), op(event.Deploy)), "deploy"},
		"a failed deployment is undone":                               {host(event.Deploying, wants("a"), has("a"), failed(event.Deploy, 1)), "undeploy"},
		"an unwanted deployment is given up":                          {host(event.Deploying, has("a"), op(event.Deploy)), "record deploy.aborted"},
		"and undone":                                                  {host(event.Deploying, has("a")), "undeploy"},
		"its Secret was touched":                                      {host(event.Deploying, wants("a"), has("a"), op(event.Deploy), rotated), "deploy"},
		"the backend lost it":                                         {host(event.Deploying, wants("a"), has("a"), op(event.Deploy), lost), "record deploy.aborted"},
		"a busy host is detached later":                               {host(event.Deploying, wants("a"), has("a"), op(event.Deploy), detached), "deploy"},
		"unless that is forced":                                       {host(event.Deploying, wants("a"), has("a"), op(event.Deploy), detachedNow), "record deploy.aborted"},
		"an image that was refused is tried again":                    {host(event.Prepared, wants("a"), refused), "deploy"},
		"another image after one that was refused":                    {host(event.Prepared, wants("a"), refused, wants("b")), "record attempts.reset"},
		"its user asks to try again":                                  {host(event.Prepared, wants("a"), failed(event.Deploy, 5), func(h *lifecycle.Host) { h.Intent.Retry = "now" }), "record attempts.reset"},
		"a provisioned host rests":                                    {host(event.Deployed, wants("a"), has("a")), "nothing"},
		"its image was removed":                                       {host(event.Deployed, has("a")), "undeploy"},
		"its image was changed":                                       {host(event.Deployed, wants("b"), has("a")), "undeploy"},
		"it is deleted":                                               {host(event.Deployed, wants("a"), has("a"), leaving), "undeploy"},
		"it is deleted while detached":                                {host(event.Deployed, wants("a"), has("a"), leaving, detached), "nothing"},
		"it is offline":                                               {host(event.Deployed, wants("a"), has("a"), offline), "nothing"},
		"the backend lost it while it is in use":                      {host(event.Deployed, wants("a"), has("a"), lost), "nothing"},
		"the backend lost it and its image was removed":               {host(event.Deployed, has("a"), lost), "nothing"},
		"its BMC does not answer":                                     {host(event.Deployed, wants("a"), has("a"), unreached), "nothing"},
		"its BMC does not answer and it is deleted":                   {host(event.Deployed, wants("a"), has("a"), unreached, leaving), "record undeploy.abandoned"},
		"it is paused and its image was removed":                      {host(event.Deployed, has("a"), paused), "nothing"},
		"cleaning goes on":                                            {host(event.Undeploying, has("a"), op(event.Undeploy)), "undeploy"},
		"cleaning that fails is tried again":                          {host(event.Undeploying, has("a"), failed(event.Undeploy, 9)), "undeploy"},
		"for a host that is deleted a few times":                      {host(event.Undeploying, has("a"), leaving, failed(event.Undeploy, 3)), "undeploy"},
		"but not more":                                                {host(event.Undeploying, has("a"), leaving, failed(event.Undeploy, 4)), "record undeploy.abandoned"},
		"nor longer than allowed where the deletion is forced":        {host(event.Undeploying, has("a"), late, forced, op(event.Undeploy)), "record undeploy.abandoned"},
		"its deployment is given up":                                  {host(event.Deploying, has("a"), leaving, op(event.Deploy)), "record deploy.aborted"},
		"and what failed long before is tried once more":              {host(event.Undeploying, has("a"), leaving, failed(event.Undeploy, 9), before), "undeploy"},
		"and only once where the deletion is forced":                  {host(event.Undeploying, has("a"), leaving, forced, failed(event.Undeploy, 1)), "record undeploy.abandoned"},
		"somebody else's host rests":                                  {host(event.External, others), "nothing"},
		"somebody else's host that was registered as such":            {host(event.Unprepared, others, func(h *lifecycle.Host) { h.Registration.External = true }), "record external.entered"},
		"it becomes ours":                                             {host(event.External, wants("a")), "record external.left"},
		"a host that is deleted before anything was done to it rests": {host(event.Prepared, leaving), "nothing"},
		"firmware is changed first":                                   {host(event.Prepared, wants("a"), firmware), "prepare"},
		"also where no image is wanted":                               {host(event.Prepared, firmware), "prepare"},
		"but not again":                                               {host(event.Prepared, firmware, handed), "nothing"},
		"firmware of a host in use is changed before it boots":        {host(event.Deployed, wants("a"), has("a"), firmware, seenOff), "service"},
		"not while it runs":                                           {host(event.Deployed, wants("a"), has("a"), firmware), "nothing"},
		"nor again":                                                   {host(event.Deployed, wants("a"), has("a"), firmware, handed, seenOff), "nothing"},
		"it goes on though the machine is on by now":                  {host(event.Deployed, wants("a"), has("a"), firmware, op(event.Service)), "service"},
		"it goes on though nothing is wished any more":                {host(event.Deployed, wants("a"), has("a"), op(event.Service)), "service"},
		"what failed is tried again":                                  {host(event.Deployed, wants("a"), has("a"), firmware, failed(event.Service, 9)), "service"},
		"or called off":                                               {host(event.Deployed, wants("a"), has("a"), failed(event.Service, 9)), "service"},
		"it is given up if the image is to go":                        {host(event.Deployed, has("a"), firmware, op(event.Service)), "record service.aborted"},
		"and then undeployed":                                         {host(event.Deployed, has("a"), firmware, seenOff, failed(event.Service, 1)), "undeploy"},
		"it is given up if the host is deleted":                       {host(event.Deployed, wants("a"), has("a"), leaving, op(event.Service)), "record service.aborted"},
		"it is given up if the host is detached":                      {host(event.Deployed, wants("a"), has("a"), detached, op(event.Service)), "record service.aborted"},
		"firmware of somebody else's host":                            {host(event.External, others, firmware, seenOff), "service"},
		"which becomes ours once that is done":                        {host(event.External, wants("a"), firmware, op(event.Service)), "service"},
		"a preparation of a host that is deleted is given up":         {host(event.Unprepared, leaving, op(event.Prepare)), "record prepare.aborted"},
	} {
		t.Run(name, func(t *testing.T) {
			task, step := decide(c.host, now, 5)
			if got := text(task, step); got != c.want {
				t.Errorf("decided %q, want %q", got, c.want)
			}
		})
	}
}

// text is a decision in words.
func text(t lifecycle.Task, s lifecycle.Step) string {
	switch s := s.(type) {
	case lifecycle.Nothing:
		return "nothing"
	case lifecycle.Record:
		if _, ok := s.Fact.(lifecycle.Failed); ok {
			return "fail"
		}
		return "record " + s.Fact.Name()
	default:
		return string(t.Kind)
	}
}
