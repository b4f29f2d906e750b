package webhook

// The keys of the package's log lines.
const (
	keyAddress  = "address"
	keyError    = "error"
	keyExpires  = "expires"
	keyObject   = "object"
	keyPath     = "path"
	keySettings = "settings"
)
