package projector

// The keys of the projector's log lines.
const (
	keyHost  = "host"
	keyUID   = "uid"
	keyFact  = "fact"
	keyLost  = "lost"
	keyCause = "cause"
	keyError = "error"
	keyField = "field"
	keyCount = "count"
)
