package bus

import (
	"context"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// resync is the safety net under the work tokens: it wakes the hosts that have
// work for the service and where nothing has happened for too long. It finds
// something only after a consumer or the end of the log was lost.
func (s *server) resync(ctx context.Context) error {
	woken := 0
	for h, err := range s.b.Hosts(ctx) {
		if err != nil {
			return err
		}
		if !s.h.forgotten(h) {
			continue
		}
		if err := s.b.Wake(ctx, s.service, h.UID, TickResync); err != nil {
			return err
		}
		woken++
	}
	if woken > 0 {
		s.b.log.WarnContext(ctx, "woke hosts where nothing had happened for too long", keyCount, woken)
	}
	return nil
}

// forgotten reports whether the section's operation, or one that should have
// begun, has stood still for too long.
func (w *work) forgotten(h lifecycle.Host) bool {
	now, limit := w.b.clock(), w.b.cfg.Timing.Forgotten
	own := h.Work(w.section)
	if own.Op != nil {
		return now.Sub(h.Newest(w.section).At) > limit
	}
	section, newest := h.NewestFact()
	op, _ := h.Op()
	stage := lifecycle.Stage(h)
	return op == nil && now.Sub(newest.At) > limit && (own.Problem != nil || !settled(h, stage)) &&
		w.worker.Cares(triggerFrom(h, section, newest, stage))
}

// settled reports whether the host may stay in its stage for ever: nothing more
// is asked of it.
func settled(h lifecycle.Host, stage v1alpha1.ProvisioningState) bool {
	if h.Intent.Paused {
		return true
	}
	switch stage {
	case v1alpha1.StateNone, v1alpha1.StateUnmanaged:
		return true
	case v1alpha1.StateExternallyProvisioned:
		return lifecycle.BeforeBoot(h) == ""
	case v1alpha1.StateAvailable:
		return !lifecycle.WantsImage(h) && !lifecycle.WantsInspection(h) && !lifecycle.Unsettled(h)
	case v1alpha1.StateProvisioned:
		return !lifecycle.Unwanted(h) && lifecycle.BeforeBoot(h) == ""
	case v1alpha1.StateDeleting:
		return h.Registration.Removed || !h.Registration.Registered
	default:
		return false
	}
}
