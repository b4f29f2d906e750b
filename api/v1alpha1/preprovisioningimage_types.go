package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PreprovisioningImageFinalizer keeps a PreprovisioningImage until what was
// built for it is gone.
const PreprovisioningImageFinalizer = "preprovisioningimage.metal3.io"

// ImageFormat is the form in which a ramdisk is delivered.
//
// +kubebuilder:validation:Enum=iso;initrd
type ImageFormat string

const (
	// ImageFormatISO is one bootable ISO image, for virtual media.
	ImageFormatISO ImageFormat = "iso"
	// ImageFormatInitRD is a kernel and an initial ramdisk, for network boot.
	ImageFormatInitRD ImageFormat = "initrd"
)

// ImageStatusConditionType is a condition of a PreprovisioningImage.
type ImageStatusConditionType string

const (
	// ConditionImageReady is True once the image can be booted.
	ConditionImageReady ImageStatusConditionType = "Ready"
	// ConditionImageError is True if the image can not be made.
	ConditionImageError ImageStatusConditionType = "Error"
)

// Reasons of the conditions of a PreprovisioningImage.
const (
	// ImageSuccessReason is an image that is there, or on its way.
	ImageSuccessReason = "ImageSuccess"
	// ImageConfigurationErrorReason is a wish that can not be met, such as an
	// architecture that nobody builds.
	ImageConfigurationErrorReason = "ConfigurationError"
	// ImageMissingNetworkDataReason is a Secret that is not there.
	ImageMissingNetworkDataReason = "MissingNetworkData"
	// ImageBuildInvalidReason is network data that no image can be built from.
	ImageBuildInvalidReason = "ImageBuildInvalid"
)

// PreprovisioningImageSpec is what the ramdisk of a host must be like.
type PreprovisioningImageSpec struct {
	// networkDataName is the Secret in the same namespace with the network
	// configuration to build in. Written by the operator from the host's
	// spec.preprovisioningNetworkDataName; read by whoever builds images.
	// +optional
	NetworkDataName string `json:"networkDataName,omitempty"`

	// architecture is the host's processor, such as x86_64. Written by the
	// operator.
	// +optional
	Architecture string `json:"architecture,omitempty"`

	// acceptFormats are the forms that the host can boot, the best first.
	// Written by the operator from what the host's BMC can do.
	// +optional
	AcceptFormats []ImageFormat `json:"acceptFormats,omitempty"`
}

// SecretStatus names one version of a Secret.
type SecretStatus struct {
	// name of the Secret.
	// +optional
	Name string `json:"name,omitempty"`

	// version is the Secret's resourceVersion.
	// +optional
	Version string `json:"version,omitempty"`
}

// PreprovisioningImageStatus is what was built. It is written by whoever builds
// images and read by the operator.
type PreprovisioningImageStatus struct {
	// imageUrl is where the ISO image or the initial ramdisk lies.
	// +optional
	ImageUrl string `json:"imageUrl,omitempty"` //nolint:revive // Programs that use the API know this name.

	// kernelUrl is where the kernel lies, for an initial ramdisk only.
	// +optional
	KernelUrl string `json:"kernelUrl,omitempty"` //nolint:revive // Programs that use the API know this name.

	// extraKernelParams are added to the kernel's command line, for an initial
	// ramdisk only.
	// +optional
	ExtraKernelParams string `json:"extraKernelParams,omitempty"`

	// format of what lies at imageUrl.
	// +optional
	Format ImageFormat `json:"format,omitempty"`

	// networkData is the version of the Secret that was built in.
	// +optional
	NetworkData SecretStatus `json:"networkData,omitempty"`

	// architecture of the image.
	// +optional
	Architecture string `json:"architecture,omitempty"`

	// conditions are Ready and Error.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty" patchMergeKey:"type" patchStrategy:"merge"`
}

// PreprovisioningImage is the ramdisk that the BareMetalHost of the same name
// boots for inspection, cleaning and provisioning. The operator asks for it; a
// controller of its own, ours or somebody else's, builds it and tells where it
// lies.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=ppimg
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status",description="Whether the image can be booted"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].reason",description="Why it can or can not"
type PreprovisioningImage struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the image must be like.
	Spec PreprovisioningImageSpec `json:"spec,omitempty"`

	// status is what was built.
	Status PreprovisioningImageStatus `json:"status,omitempty"`
}

// PreprovisioningImageList is a list of PreprovisioningImages.
//
// +kubebuilder:object:root=true
type PreprovisioningImageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PreprovisioningImage `json:"items"`
}
