// Package webhook serves the validating webhook: the Kubernetes API asks it
// before it stores one of our objects, and it answers by the rules of
// pkg/admission.
//
// Every replica serves it, and no replica needs another one for it. What a rule
// must know of other hosts comes from the hosts that kube.Cluster has seen: a
// refusal that rests on them is given too if they are not known yet, a warning
// is not.
//
// The certificate comes from files, which cert-manager or somebody else keeps
// fresh, or is made here: an authority and a certificate signed by it lie in a
// Secret that all replicas share, and the authority is written into the
// webhook's configuration. All of them keep both up to date by compare and
// swap, so it does not matter which one does, or whether two do.
package webhook
