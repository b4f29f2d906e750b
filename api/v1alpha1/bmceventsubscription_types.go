package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BMCEventSubscriptionFinalizer keeps a subscription until the BMC no longer
// sends events for it.
const BMCEventSubscriptionFinalizer = "bmceventsubscription.metal3.io"

// BMCEventSubscriptionSpec is which events go where. It can not be changed;
// make another subscription instead.
//
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || (has(self.hostName) && size(self.hostName) > 0)",optionalOldSelf=true,fieldPath=".hostName",message="hostName cannot be empty",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || (has(self.destination) && size(self.destination) > 0)",optionalOldSelf=true,fieldPath=".destination",message="destination cannot be empty",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="subscriptions cannot be updated, please recreate it",reason=FieldValueForbidden
type BMCEventSubscriptionSpec struct {
	// hostName is the BareMetalHost in the same namespace whose BMC sends the
	// events. Set by the user; needed.
	// +optional
	HostName string `json:"hostName,omitempty"`

	// destination is the URL that the BMC posts events to, with a path, be it
	// only a slash. Set by the user; needed.
	// +optional
	Destination string `json:"destination,omitempty"`

	// context is a text that the BMC adds to each event, so that the receiver
	// knows which subscription it is for.
	// +optional
	Context string `json:"context,omitempty"`

	// httpHeadersRef is a Secret whose keys and values the BMC sends as HTTP
	// headers, to log in at the destination. It must be in the same namespace,
	// and say so.
	// +optional
	HTTPHeadersRef *corev1.SecretReference `json:"httpHeadersRef,omitempty"`
}

// BMCEventSubscriptionStatus is what became of a subscription.
type BMCEventSubscriptionStatus struct {
	// subscriptionID is the BMC's name for the subscription.
	// +optional
	SubscriptionID string `json:"subscriptionID,omitempty"`

	// error is why there is no subscription yet.
	// +optional
	Error string `json:"error,omitempty"`
}

// BMCEventSubscription asks the BMC of a host to send its events (hardware
// alerts, power changes) to a URL.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=bes;bmcevent
// +kubebuilder:metadata:labels={"clusterctl.cluster.x-k8s.io=","clusterctl.cluster.x-k8s.io/move="}
// +kubebuilder:printcolumn:name="Error",type="string",JSONPath=".status.error",description="Why there is no subscription yet"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since the subscription was asked for"
type BMCEventSubscription struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is which events go where.
	Spec BMCEventSubscriptionSpec `json:"spec,omitempty"`

	// status is what became of it.
	Status BMCEventSubscriptionStatus `json:"status,omitempty"`
}

// BMCEventSubscriptionList is a list of BMCEventSubscriptions.
//
// +kubebuilder:object:root=true
type BMCEventSubscriptionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []BMCEventSubscription `json:"items"`
}
