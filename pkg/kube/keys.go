package kube

// The keys of the package's log lines.
const (
	keyHost     = "host"
	keyUID      = "uid"
	keyIdentity = "identity"
	keyCause    = "cause"
	keyError    = "error"
)
