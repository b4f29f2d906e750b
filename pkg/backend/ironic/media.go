package ironic

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/ironic"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

const (
	// mediaShows is how long it may take to be seen that a change of the drive
	// that Ironic is done with had an effect.
	mediaShows = time.Minute
	// mediaTakes is how long Ironic may be at such a change, for which it fetches
	// the image. It refuses to power the machine on meanwhile.
	mediaTakes = 30 * time.Minute
)

// attachOf is the name of the write that puts an image into the drive: another one
// for each, since Ironic shows its own copy and not whose that is.
func attachOf(url string) string {
	sum := sha256.Sum256([]byte(url))
	return writeAttach + "/" + hex.EncodeToString(sum[:4])
}

// media is how the change of what is in the virtual CD drive stands.
func (b *Backend) media(ctx context.Context, v view) (lifecycle.Outlook, error) {
	if err := v.version.Needs(ironic.FeatureVirtualMedia); err != nil {
		return nil, err
	}
	switch {
	case v.node.Fault == ironic.FaultPower:
		return v.powerless(), nil
	case v.occupied():
		return v.mediaOccupied(), nil
	case v.node.Reservation != "":
		return v.mediaWaits(), nil
	}
	if !v.version.Has(ironic.FeatureVirtualMediaGet) {
		return v.mediaUnseen(), nil
	}
	drives, err := b.client.VirtualMedia(ctx, v.node.UUID)
	switch {
	case errors.Is(err, lifecycle.ErrBusy):
		return v.mediaWaits(), nil
	case err != nil:
		return nil, err
	default:
		return v.mediaSeen(inserted(drives)), nil
	}
}

// inserted reports whether there is something in a CD drive; a machine whose BMC
// does not say which of its drives are for CDs has only such.
func inserted(drives []ironic.VirtualMedia) bool {
	cd := func(d ironic.VirtualMedia) bool {
		return slices.Contains(d.MediaTypes, "CD") || slices.Contains(d.MediaTypes, "DVD")
	}
	known := slices.ContainsFunc(drives, cd)
	return slices.ContainsFunc(drives, func(d ironic.VirtualMedia) bool { return d.Inserted && (cd(d) || !known) })
}

// mediaOccupied is the outlook while Ironic or an agent, which may run from that
// drive, is at work on the machine. If that never ends it is none of the drive's.
func (v view) mediaOccupied() lifecycle.Outlook {
	if v.node.Idle() > v.limit() {
		return v.unexpected("See what is said of the host's power")
	}
	return underway(fmt.Sprintf("Ironic, which has the node in state %q", v.node.ProvisionState), lifecycle.Long)
}

// mediaWaits is the outlook while a conductor holds the node.
func (v view) mediaWaits() lifecycle.Outlook {
	if op := v.op(); op != nil && v.now.Sub(op.StepAt) > mediaTakes {
		return v.refuse(event.ClassTimeout, "Ironic has been changing the virtual CD drive for more than "+mediaTakes.String(),
			"Restart the conductor of Ironic that holds the node; it is tried again when the host is next powered on")
	}
	return underway("Ironic, which holds the node", lifecycle.Quick)
}

// mediaSeen is the outlook where it is known whether something is in the drive.
func (v view) mediaSeen(in bool) lifecycle.Outlook {
	want, cd := lifecycle.WantedMedia(v.host), v.host.Provisioning.Media
	step := v.mediaStep()
	switch {
	case !in && want == "", in && want != "" && step == attachOf(want), in && want != "" && v.mediaKept():
		return finished()
	case !in && v.did(attachOf(want)):
		return v.mediaEnds("attach the data image: ", "nothing is in the drive, and Ironic does not say why")
	case !in:
		return needs(attachOf(want))
	case step == "" && cd.URL == "" && !cd.Unsure:
		return v.refuse(event.ClassMedia, "attach the data image: something else is in the virtual CD drive, such as the live image that the host runs",
			"Eject it at the BMC, if it is not needed; the data image is attached when the host is next powered on")
	case v.did(writeDetach):
		return v.mediaEnds("empty the virtual CD drive: ", "something is in it still, and Ironic does not say why")
	default:
		return needs(writeDetach)
	}
}

// mediaUnseen is the outlook with an Ironic that does not tell what is in the drive.
func (v view) mediaUnseen() lifecycle.Outlook {
	want, cd := lifecycle.WantedMedia(v.host), v.host.Provisioning.Media
	step := v.mediaStep()
	empty := step == "" && cd.URL == "" && !cd.Unsure
	done := v.did(attachOf(want)) || v.did(writeDetach)
	switch {
	case done && v.node.LastError != "":
		return v.broken(event.ClassMedia, "change the virtual CD drive: ", "")
	case v.did(attachOf(want)), v.did(writeDetach) && want == "", v.mediaKept():
		return finished()
	case empty, v.did(writeDetach), step == attachOf(want):
		return needs(attachOf(want))
	default:
		return needs(writeDetach)
	}
}

// mediaStep is the last write of the change, "" before the first.
func (v view) mediaStep() string {
	if op := v.op(); op != nil {
		return op.Step
	}
	return ""
}

// mediaKept: what is wanted was put into the drive before, and nothing was done since.
func (v view) mediaKept() bool {
	cd := v.host.Provisioning.Media
	return v.op() == nil && cd.URL == lifecycle.WantedMedia(v.host) && !cd.Unsure
}

// mediaEnds is the outlook of a change that Ironic is done with and that does not
// show: it failed, or is seen soon.
func (v view) mediaEnds(prefix, unexplained string) lifecycle.Outlook {
	if v.node.LastError == "" && v.now.Sub(v.op().StepAt) < mediaShows {
		return underway("the BMC to show what is in the virtual CD drive", lifecycle.Quick)
	}
	return v.broken(event.ClassMedia, prefix, unexplained)
}

// doAttach has an image put into the drive.
func (b *Backend) doAttach(ctx context.Context, v view) error {
	if err := fence(v.node, v.host); err != nil {
		return err
	}
	url := lifecycle.WantedMedia(v.host)
	if url == "" {
		return nil // it is looked at again
	}
	return b.client.AttachMedia(ctx, v.node.UUID, url)
}

// doDetach has the drive emptied.
func (b *Backend) doDetach(ctx context.Context, v view) error {
	if err := fence(v.node, v.host); err != nil {
		return err
	}
	return b.client.DetachMedia(ctx, v.node.UUID)
}
