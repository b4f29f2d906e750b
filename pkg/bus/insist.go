package bus

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// settling is how long a cluster of servers may take to form.
	settling = time.Minute
	// unsettled is the pause before it is asked again.
	unsettled = 500 * time.Millisecond
	// errCodeNoPeers is the server's "no suitable peers for placement": the
	// others have not joined yet.
	errCodeNoPeers jetstream.ErrorCode = 10005
)

// insist does what a cluster of servers refuses while it forms, again and again
// until it has. What is refused for another reason is an error at once.
func insist(ctx context.Context, log *slog.Logger, do func() (Outcome, error)) (Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, settling)
	defer cancel()
	for first := true; ; first = false {
		outcome, err := do()
		if !forming(err) {
			return outcome, err
		}
		if first {
			log.WarnContext(ctx, "waiting for the NATS servers to form their cluster", keyError, err.Error())
		}
		select {
		case <-time.After(unsettled):
		case <-ctx.Done():
			return outcome, err
		}
	}
}

// forming reports whether an error is that of servers that have no leader yet, or
// too few peers.
func forming(err error) bool {
	var api *jetstream.APIError
	if errors.As(err, &api) {
		return api.Code == http.StatusServiceUnavailable || api.ErrorCode == errCodeNoPeers
	}
	return errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse) ||
		errors.Is(err, nats.ErrTimeout) || errors.Is(err, context.DeadlineExceeded)
}
