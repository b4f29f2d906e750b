package backend

import (
	"context"
	"errors"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// FirmwareReader reads machines' firmware.
type FirmwareReader interface {
	// Firmware is what can be read of the machine's firmware now, nil if that is
	// nothing.
	Firmware(ctx context.Context, h lifecycle.Host) (*event.Firmware, error)
}

// Store keeps documents that are too large for an event.
type Store interface {
	PutData(ctx context.Context, uid, name string, value any) (digest string, err error)
}

// ReadFirmware reads a host's firmware and keeps it. That it cannot be read is not
// the host's failure: the answer says why, and what was known stays in effect. An
// error is trouble with the store, or that the backend does not know the host.
func ReadFirmware(ctx context.Context, from FirmwareReader, to Store, h lifecycle.Host, now time.Time) (event.FirmwareRead, error) {
	read := event.FirmwareRead{At: now.UTC()}
	f, err := from.Firmware(ctx, h)
	switch {
	case errors.Is(err, lifecycle.ErrUnregistered), ctx.Err() != nil:
		return read, errors.Join(err, ctx.Err())
	case err != nil:
		read.Problem, read.Digest = err.Error(), lifecycle.Firmware(h).Digest
		return read, nil //nolint:nilerr // it is told in the answer
	case f == nil:
		return read, nil
	}
	read.Digest, err = to.PutData(ctx, h.UID, event.DataFirmware, f)
	return read, err
}
