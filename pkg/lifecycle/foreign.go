package lifecycle

import (
	"fmt"

	"github.com/metalbus/metalbus/api/event"
)

// foreignText says in words what somebody else has done, "" if it was not somebody
// else.
func foreignText(f Observed) string {
	if f.Suspect == "" {
		return ""
	}
	return foreignDeed(f.What, f.Maintenance, f.Astray) + ", which metalbus did not do; suspected is " + f.Suspect
}

func foreignDeed(what, maintenance, astray string) string {
	switch {
	case what == event.MaintenanceChanged && maintenance != "":
		return "the backend is to leave the host alone (" + maintenance + ")"
	case what == event.MaintenanceChanged:
		return "the backend has to leave the host alone no longer"
	case what == event.StateChanged && astray != "":
		return fmt.Sprintf("the backend has the host in state %q", astray)
	case what == event.StateChanged:
		return "the backend has the host in the state of such a host again"
	default:
		return "the power was changed"
	}
}

// foreignNews tells what somebody else has done to a host at rest.
func foreignNews(after Host, fact string) *Announcement {
	p := after.Power
	if p.Suspect == "" {
		return nil
	}
	text := func(format string, args ...any) string {
		return fmt.Sprintf(format, args...) + "; metalbus did not do that, suspected is " + p.Suspect
	}
	switch {
	case fact == event.PowerChanged && p.On != nil:
		return &Announcement{Reason: "PowerChanged", Message: text("The host was found powered %s", map[bool]string{true: "on", false: "off"}[*p.On])}
	case fact == event.MaintenanceChanged && p.Maintenance != "":
		return &Announcement{Reason: "MaintenanceSet", Message: text("The backend is to leave the host alone: %s", p.Maintenance), Warning: true}
	case fact == event.MaintenanceChanged:
		return &Announcement{Reason: "MaintenanceEnded", Message: text("The backend has to leave the host alone no longer")}
	case fact == event.StateChanged && p.Astray != "":
		return &Announcement{
			Reason: "StateChangedByOthers", Warning: true,
			Message: text("The backend has the host in state %q, though it is %s", p.Astray, Stage(after)) + ". Nothing is done to the machine because of it",
		}
	case fact == event.StateChanged:
		return &Announcement{Reason: "StateRestoredByOthers", Message: text("The backend has the host in the state of one that is %s again", Stage(after))}
	default:
		return nil
	}
}

// Behind says in words what somebody else has done to the host that is still so.
func Behind(h Host) []string {
	var list []string
	if p := h.Power; p.Maintenance != "" {
		list = append(list, foreignDeed(event.MaintenanceChanged, p.Maintenance, ""))
	}
	if p := h.Power; p.Astray != "" {
		list = append(list, foreignDeed(event.StateChanged, "", p.Astray))
	}
	return list
}
