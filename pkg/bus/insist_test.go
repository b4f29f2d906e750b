package bus

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A cluster that forms is waited for, and only that.
func TestInitWaitsForAClusterToForm(t *testing.T) {
	refused := errors.New("refused")
	for name, tc := range map[string]struct {
		answers []error
		want    error
		asked   int
	}{
		"at once":             {[]error{nil}, nil, 1},
		"no leader, no peers": {[]error{&jetstream.APIError{Code: 503, ErrorCode: 10008}, &jetstream.APIError{Code: 400, ErrorCode: 10005}, nats.ErrNoResponders, nil}, nil, 4},
		"refused for good":    {[]error{nats.ErrTimeout, refused, nil}, refused, 2},
		"never":               {[]error{context.DeadlineExceeded}, context.DeadlineExceeded, int(settling / unsettled)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				_, err := insist(t.Context(), slog.New(slog.DiscardHandler), func() (Outcome, error) {
					err := tc.answers[min(asked, len(tc.answers)-1)]
					asked++
					return Created, err
				})
				if !errors.Is(err, tc.want) || asked < tc.asked || asked > tc.asked+1 {
					t.Errorf("asked %d times, then %v; want %d, %v", asked, err, tc.asked, tc.want)
				}
			})
		})
	}
}
