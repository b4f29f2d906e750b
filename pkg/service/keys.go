package service

// The keys of the frame's log lines.
const (
	keyService = "service"
	keyVersion = "version"
	keyCommit  = "commit"
	keyAddress = "address"
	keyCause   = "cause"
	keyError   = "error"
)
