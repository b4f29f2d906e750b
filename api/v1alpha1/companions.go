package v1alpha1

// What objects say of wishes that nobody carries out yet.
const (
	// SupportedCondition is False on an object whose wishes are kept and not
	// carried out. It is absent where they are.
	SupportedCondition = "Supported"
	// NotSupportedReason goes with False. Its message says what is not done,
	// and what to do instead.
	NotSupportedReason = "NotSupported"
)
