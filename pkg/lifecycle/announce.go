package lifecycle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
)

// Announcement is a Kubernetes Event about a host.
type Announcement struct {
	Reason  string
	Message string
	// Warning: something is wrong; else all is as it should be.
	Warning bool
}

// Announce says what people should be told of the fact that led from one
// revision of a host to the next. Reasons are those that tools know.
func Announce(before, after Host, section event.Section, fact string) []Announcement {
	if text := problemNews(before, after, section); text != nil {
		return []Announcement{*text}
	}
	image := after.Provisioning.Image.URL
	if image == "" {
		image = before.Provisioning.Image.URL
	}
	simple := map[string]Announcement{
		"inspection." + event.InspectSkipped:                   {Reason: "InspectionSkipped", Message: "disabled by user"},
		"inspection." + event.Inspect.Fact(event.Succeeded):    {Reason: "InspectionComplete", Message: "Hardware inspection completed"},
		"inspection." + event.DetailsSupplied:                  {Reason: "UpdateHardwareDetails", Message: "Set HardwareDetails from hardware data or annotation"},
		"provisioning." + event.Deploy.Fact(event.Succeeded):   {Reason: "ProvisioningComplete", Message: "Image provisioning completed for " + image},
		"provisioning." + event.Undeploy.Fact(event.Succeeded): {Reason: "DeprovisioningComplete", Message: "Image deprovisioning completed"},
		"provisioning." + event.Media.Fact(event.Succeeded):    {Reason: "DataImage", Message: mediaMessage(after.Provisioning.Media)},
		"provisioning." + event.UndeployAbandoned:              {Reason: "DeprovisioningAbandoned", Message: after.Provisioning.Abandoned, Warning: true},
		"power." + event.OffAbandoned:                          {Reason: "PowerOffAbandoned", Message: after.Power.Abandoned, Warning: !after.Intent.Spec.DisablePowerOff},
		"power." + event.PowerOn.Fact(event.Succeeded):         {Reason: "PowerOn", Message: "Host powered on"},
		"power." + event.PowerOff.Fact(event.Succeeded):        {Reason: "PowerOff", Message: offMessage(before)},
		"power." + event.Reboot.Fact(event.Succeeded):          {Reason: "Reboot", Message: "Host rebooted"},
		"registration." + event.NodeLost:                       {Reason: "NodeLost", Message: "The backend no longer knows the host; it is registered again", Warning: true},
		"registration." + event.Adopt.Fact(event.Succeeded):    {Reason: "Adopted", Message: "The running host was taken over, untouched"},
		"registration." + event.Detach.Fact(event.Succeeded):   {Reason: "Detached", Message: "The host is out of its backend, the machine was left alone"},
		"registration." + event.CredentialsRotated:             {Reason: "BMCAccessValidated", Message: "Verified access to BMC"},
		"intent." + event.RetryRequested:                       {Reason: "RetryRequested", Message: "What failed is tried again now, as annotation " + v1alpha1.RetryAnnotation + " asks"},
		"intent." + event.Restored:                             {Reason: "StatusRestored", Message: "Resumed from the status that the object carried"},
	}
	if a, ok := simple[string(section)+"."+fact]; ok {
		return []Announcement{a}
	}
	if text := stallNews(before, after, section); text != nil {
		return []Announcement{*text}
	}
	if text := foreignNews(after, fact); section == event.SectionPower && text != nil {
		return []Announcement{*text}
	}
	if text := subscriptionNews(before, after); section == event.SectionPower && text != nil {
		return []Announcement{*text}
	}
	if text := mediaNews(before.Provisioning.Media, after.Provisioning.Media); text != nil {
		return []Announcement{*text}
	}
	if text := startNews(before, after, image); text != nil {
		return []Announcement{*text}
	}
	return registrationNews(before, after, section, fact)
}

// startNews tells that something has begun, and not each try of it.
func startNews(before, after Host, image string) *Announcement {
	was, is := before.Provisioning.Phase, after.Provisioning.Phase
	switch {
	case was != is && is == event.Deploying:
		return &Announcement{Reason: "ProvisioningStarted", Message: "Image provisioning started for " + image}
	case was != is && is == event.Undeploying:
		return &Announcement{Reason: "DeprovisioningStarted", Message: "Image deprovisioning started"}
	case before.Inspection.Op == nil && after.Inspection.Op != nil && after.Inspection.Op.Attempt == 1:
		return &Announcement{Reason: "InspectionStarted", Message: "Hardware inspection started"}
	default:
		return nil
	}
}

// stallNews tells of trouble that is not the host's own, once.
func stallNews(before, after Host, section event.Section) *Announcement {
	was, is := before.Work(section).Stalled, after.Work(section).Stalled
	if is == nil || was != nil {
		return nil
	}
	return &Announcement{Reason: "Stalled", Message: "Waits for what does not answer: " + is.Message, Warning: true}
}

// farewell is the last that is told of a host: what could not be undone for it.
func farewell(h Host) *Announcement {
	undone := slices.DeleteFunc([]string{h.Provisioning.Abandoned, leftMedia(h.Provisioning.Media), leftSubscriptions(h), h.Power.Abandoned, h.Registration.Abandoned}, func(s string) bool { return s == "" })
	if len(undone) == 0 {
		return nil
	}
	return &Announcement{Reason: "DeletedIncompletely", Message: "Deleted, and this was left undone: " + strings.Join(undone, "; "), Warning: true}
}

func offMessage(before Host) string {
	if op := before.Power.Op; op != nil && op.Mode == v1alpha1.RebootModeSoft {
		return "Host soft powered off"
	}
	return "Host powered off"
}

func registrationNews(before, after Host, section event.Section, fact string) []Announcement {
	switch {
	case section == event.SectionIntent && Stage(after) == unmanaged && Stage(before) != unmanaged:
		return []Announcement{{Reason: "Discovered", Message: "Discovered host with no BMC details"}}
	case section == event.SectionRegistration && fact == event.Remove.Fact(event.Succeeded):
		if last := farewell(after); last != nil {
			return []Announcement{*last}
		}
		return nil
	case section != event.SectionRegistration || fact != event.Enroll.Fact(event.Succeeded):
		return nil
	}
	var news []Announcement
	if before.Registration.Node != after.Registration.Node {
		text := "Registered new host"
		if before.Registration.Registered {
			text = "Registered the host again"
		}
		news = append(news, Announcement{Reason: "Registered", Message: text})
	}
	if !SameCredentials(before.Registration.Good, after.Registration.Good) || before.Registration.Problem != nil {
		news = append(news, Announcement{Reason: "BMCAccessValidated", Message: "Verified access to BMC"})
	}
	if before.Registration.HardwareProfile != after.Registration.HardwareProfile {
		news = append(news, Announcement{Reason: "ProfileSet", Message: fmt.Sprintf("Hardware profile set: %s", after.Registration.HardwareProfile)})
	}
	return news
}

// problemNews announces a problem when it is new. The same text is not told
// again when another try ends in the same way.
func problemNews(before, after Host, section event.Section) *Announcement {
	was, is := before.Work(section).Problem, after.Work(section).Problem
	if was == nil {
		was = before.Work(section).Last
	}
	if is == nil || (was != nil && was.Type == is.Type && was.Message == is.Message) {
		return nil
	}
	return &Announcement{Reason: errorReason(*is), Message: Message(*is), Warning: true}
}

func errorReason(p event.Problem) string {
	if p.Type == v1alpha1.RegistrationError && p.Class == event.ClassCredentials && p.Kind == event.Enroll && p.Local {
		return "BMCCredentialError"
	}
	return map[v1alpha1.ErrorType]string{
		v1alpha1.RegistrationError: "RegistrationError", v1alpha1.InspectionError: "InspectionError",
		v1alpha1.PreparationError: "PreparationError", v1alpha1.ProvisioningError: "ProvisioningError",
		v1alpha1.ProvisionedRegistrationError: "ProvisionedRegistrationError", v1alpha1.PowerManagementError: "PowerManagementError",
		v1alpha1.ServicingError: "ServicingError", v1alpha1.DetachError: "DetachError",
	}[p.Type]
}
