package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DataImageFinalizer keeps a DataImage until its medium is out of the machine.
const DataImageFinalizer = "dataimage.metal3.io"

// AttachedImageReference is a medium that is in a machine's virtual drive.
type AttachedImageReference struct {
	// url is where the image lies.
	URL string `json:"url"`
}

// DataImageError is the trouble with a medium.
type DataImageError struct {
	// count is how often it failed in a row. It is tried once for each time
	// that the machine is off, and keeps it from nothing.
	Count int `json:"count"`

	// message is what failed.
	Message string `json:"message"`
}

// DataImageSpec is the medium that is wanted.
type DataImageSpec struct {
	// url is where the image (an ISO) lies. Set by the user. Whatever is
	// wanted happens when the machine is next switched on or rebooted.
	URL string `json:"url"`
}

// DataImageStatus is the medium that is there.
type DataImageStatus struct {
	// lastReconciled is when it was last tried to put the medium in, or out.
	// +optional
	LastReconciled *metav1.Time `json:"lastReconciled,omitempty"`

	// attachedImage is the medium in the machine's virtual drive; without a
	// url, none.
	// +optional
	AttachedImage AttachedImageReference `json:"attachedImage,omitempty"`

	// error is the trouble with the medium; a count of 0 is none.
	// +optional
	Error DataImageError `json:"error,omitempty"`
}

// DataImage is an image that the provisioned BareMetalHost of the same name
// finds in its virtual CD drive. It is put in when the machine is next switched
// on or rebooted, and taken out at the first such moment after the deletion of
// the object, or before the host or its image goes.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels={"clusterctl.cluster.x-k8s.io=","clusterctl.cluster.x-k8s.io/move="}
type DataImage struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the medium that is wanted.
	Spec DataImageSpec `json:"spec,omitempty"`

	// status is the medium that is there.
	Status DataImageStatus `json:"status,omitempty"`
}

// DataImageList is a list of DataImages.
//
// +kubebuilder:object:root=true
type DataImageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []DataImage `json:"items"`
}
