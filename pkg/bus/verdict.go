package bus

import (
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// verdict is what becomes of a message.
type verdict struct {
	// why is for logs and metrics: one of a few words.
	why string
	do  settlement
	// delay until the message is handed out again.
	delay time.Duration
	// cause, if something went wrong.
	cause error
	// quiet: it went wrong before, and that was logged.
	quiet bool
}

type settlement int

const (
	acknowledge settlement = iota // done with
	later                         // again after the delay
	bury                          // set aside as a dead letter
	leave                         // again after AckWait: NATS is not to be reached
)

func done(why string) verdict { return verdict{why: why, do: acknowledge} }

func again(why string, after time.Duration) verdict {
	return verdict{why: why, do: later, delay: after}
}

func (v verdict) because(err error) verdict {
	v.cause = err
	return v
}

// settle tells the server.
func (v verdict) settle(m jetstream.Msg) error {
	switch v.do {
	case acknowledge:
		return m.Ack()
	case later:
		if v.delay <= 0 {
			return m.Nak()
		}
		return m.NakWithDelay(v.delay)
	case bury:
		return m.TermWithReason(v.why)
	default:
		return nil
	}
}
