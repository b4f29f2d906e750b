package bus

// The keys of log lines.
const (
	keyHost     = "host"
	keyUID      = "uid"
	keyEvent    = "event"
	keyEventID  = "eventID"
	keyAttempt  = "attempt"
	keyError    = "error"
	keyOutcome  = "outcome"
	keyDelay    = "delay"
	keyFact     = "fact"
	keyReason   = "reason"
	keyConsumer = "consumer"
	keySequence = "sequence"
	keyCount    = "count"
	keyStack    = "stack"
	keyStep     = "step"
	keyTick     = "tick"
)
