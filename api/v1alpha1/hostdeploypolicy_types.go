package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NameValuePair is a label that must be there.
type NameValuePair struct {
	// name of the label.
	Name string `json:"name"`

	// value of the label; any if not given.
	// +optional
	Value string `json:"value,omitempty"`
}

// HostClaimNamespaces says which namespaces fit. All of it must hold; what is
// absent holds.
type HostClaimNamespaces struct {
	// names are namespaces, of which it must be one.
	// +optional
	Names []string `json:"names,omitempty"`

	// nameMatches is a regular expression (RE2) that the namespace's name must
	// match. It matches anywhere in the name: write ^ and $ for the whole.
	// +optional
	NameMatches string `json:"nameMatches,omitempty"`

	// hasLabels are labels that the namespace must have.
	// +optional
	HasLabels []NameValuePair `json:"hasLabels,omitempty"`
}

// HostDeployPolicySpec is who may claim hosts.
type HostDeployPolicySpec struct {
	// hostClaimNamespaces are the namespaces whose HostClaims may have hosts of
	// the policy's namespace. Set by whoever owns the hosts. Without it,
	// nobody.
	// +optional
	HostClaimNamespaces *HostClaimNamespaces `json:"hostClaimNamespaces,omitempty"`
}

// HostDeployPolicyStatus is empty.
type HostDeployPolicyStatus struct{}

// HostDeployPolicy lets HostClaims of other namespaces have the BareMetalHosts
// of its own namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels={"clusterctl.cluster.x-k8s.io=","clusterctl.cluster.x-k8s.io/move="}
type HostDeployPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is who may claim hosts.
	Spec HostDeployPolicySpec `json:"spec,omitempty"`

	// status is empty.
	Status HostDeployPolicyStatus `json:"status,omitempty"`
}

// HostDeployPolicyList is a list of HostDeployPolicies.
//
// +kubebuilder:object:root=true
type HostDeployPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []HostDeployPolicy `json:"items"`
}
