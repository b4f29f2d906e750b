package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BootMode is how a machine's firmware boots.
//
// +kubebuilder:validation:Enum=UEFI;UEFISecureBoot;legacy
type BootMode string

const (
	// UEFI boots by UEFI without secure boot.
	UEFI BootMode = "UEFI"
	// UEFISecureBoot boots by UEFI, and only what is signed.
	UEFISecureBoot BootMode = "UEFISecureBoot"
	// Legacy boots by BIOS.
	Legacy BootMode = "legacy"
	// DefaultBootMode is the mode of a host that asks for none.
	DefaultBootMode BootMode = UEFI
)

// AutomatedCleaningMode is what is wiped when a host is set free.
//
// +kubebuilder:validation:Enum=metadata;disabled
type AutomatedCleaningMode string

const (
	// CleaningModeDisabled leaves the disks as they are.
	CleaningModeDisabled AutomatedCleaningMode = "disabled"
	// CleaningModeMetadata wipes partition tables and the like, so that the
	// old system does not boot; the data are still there.
	CleaningModeMetadata AutomatedCleaningMode = "metadata"
)

// InspectionMode is how the hardware of a host is found out.
//
// +kubebuilder:validation:Enum=disabled;agent;fast
type InspectionMode string

const (
	// InspectionModeDisabled looks at nothing.
	InspectionModeDisabled InspectionMode = "disabled"
	// InspectionModeAgent boots a ramdisk that looks from the inside.
	InspectionModeAgent InspectionMode = "agent"
	// InspectionModeFast asks the BMC, in seconds and without a boot.
	InspectionModeFast InspectionMode = "fast"
)

// BMCDetails is how to reach a machine's management controller (BMC).
type BMCDetails struct {
	// address is where the BMC is and how to speak with it, such as
	// redfish-virtualmedia+https://192.0.2.10/redfish/v1/Systems/1 or
	// ipmi://192.0.2.10:623. Set by the user. It can be changed while the host
	// is registering or detached. Empty for a host that is not managed.
	Address string `json:"address"`

	// credentialsName is the Secret in the host's namespace with the keys
	// username and password. Set by the user. A change of the Secret is tried
	// at once; white space around the values is ignored. Empty for a host that
	// is not managed.
	CredentialsName string `json:"credentialsName"`

	// disableCertificateVerification takes any certificate that the BMC shows.
	// Needed for BMCs with a self-signed one; it lets whoever sits between
	// read the password.
	// +optional
	DisableCertificateVerification bool `json:"disableCertificateVerification,omitempty"`
}

// CustomDeploy is a deploy step of the user's own ramdisk that takes the place
// of writing an image.
type CustomDeploy struct {
	// method is the name of the deploy step. A provisioned host is
	// deprovisioned and provisioned again when this changes.
	Method string `json:"method"`
}

// FirmwareConfig was how firmware was set before HostFirmwareSettings. It is
// kept so that old objects can be read; it can not be set.
type FirmwareConfig struct {
	// virtualizationEnabled: use HostFirmwareSettings.
	// +kubebuilder:validation:Enum=true;false
	// +optional
	VirtualizationEnabled *bool `json:"virtualizationEnabled,omitempty"`

	// simultaneousMultithreadingEnabled: use HostFirmwareSettings.
	// +kubebuilder:validation:Enum=true;false
	// +optional
	SimultaneousMultithreadingEnabled *bool `json:"simultaneousMultithreadingEnabled,omitempty"`

	// sriovEnabled: use HostFirmwareSettings.
	// +kubebuilder:validation:Enum=true;false
	// +optional
	SriovEnabled *bool `json:"sriovEnabled,omitempty"`
}

// BareMetalHostSpec is what is wanted of a host.
//
// +kubebuilder:validation:XValidation:rule="!has(self.firmware)",fieldPath=".firmware",message="the Firmware field is no longer supported, use HostFirmwareSettings resource instead"
// +kubebuilder:validation:XValidation:rule="!has(self.disablePowerOff) || !self.disablePowerOff || self.online",fieldPath=".disablePowerOff",message="node can't simultaneously have online set to false and have power off disabled; set online to true, or disablePowerOff to false"
// +kubebuilder:validation:XValidation:rule="!has(self.rootDeviceHints) || !has(self.rootDeviceHints.deviceName) || size(self.rootDeviceHints.deviceName) == 0 || self.rootDeviceHints.deviceName.startsWith('/dev/')",fieldPath=".rootDeviceHints.deviceName",message="device name of root device hint must be a /dev/ path",messageExpression="'device name of root device hint must be a /dev/ path, not \"' + self.rootDeviceHints.deviceName + '\"'"
// +kubebuilder:validation:XValidation:rule="!has(self.rootDeviceHints) || !has(self.rootDeviceHints.deviceName) || !self.rootDeviceHints.deviceName.startsWith('/dev/') || self.rootDeviceHints.deviceName.matches('^/dev/(disk/by-path/)?[^/]*$')",fieldPath=".rootDeviceHints.deviceName",message="device name of root device hint must be path in /dev/ or /dev/disk/by-path/",messageExpression="'device name of root device hint must be path in /dev/ or /dev/disk/by-path/, not \"' + self.rootDeviceHints.deviceName + '\"'"
// +kubebuilder:validation:XValidation:rule="!has(self.raid) || !has(self.raid.hardwareRAIDVolumes) || !has(self.raid.softwareRAIDVolumes) || size(self.raid.hardwareRAIDVolumes) == 0 || size(self.raid.softwareRAIDVolumes) == 0",fieldPath=".raid",message="hardwareRAIDVolumes and softwareRAIDVolumes can not be set at the same time; empty one of them"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.bootMACAddress) || (has(self.bootMACAddress) && self.bootMACAddress.lowerAscii() == oldSelf.bootMACAddress.lowerAscii())",fieldPath=".bootMACAddress",message="bootMACAddress can not be changed once it is set; the host has to be created anew (detach a provisioned one before you delete it)",reason=FieldValueForbidden
type BareMetalHostSpec struct {
	// taints are not used. Put taints on the Node instead.
	// +optional
	Taints []corev1.Taint `json:"taints,omitempty"`

	// bmc is how to reach the machine's management controller. Set by the
	// user. Without it the host is unmanaged: it is listed and nothing is done
	// to it.
	// +optional
	BMC BMCDetails `json:"bmc,omitempty"`

	// raid is the RAID that the host gets before it becomes available. Set by
	// the user. A change sends an available host back to preparing, and has no
	// effect on a provisioned one until it is free again.
	// +optional
	RAID *RAIDConfig `json:"raid,omitempty"`

	// firmware can no longer be set; use HostFirmwareSettings.
	// +optional
	Firmware *FirmwareConfig `json:"firmware,omitempty"`

	// hardwareProfile is the old way to choose the root disk: unknown,
	// libvirt, dell, dell-raid, openstack or empty. Use rootDeviceHints.
	// +optional
	HardwareProfile string `json:"hardwareProfile,omitempty"`

	// rootDeviceHints choose the disk that the image is written to. Set by the
	// user. Used by the next provisioning; a change never provisions a running
	// host again.
	// +optional
	RootDeviceHints *RootDeviceHints `json:"rootDeviceHints,omitempty"`

	// bootMode is how the machine boots; UEFI if not given. Set by the user.
	// Read when the host starts to be registered, inspected or provisioned.
	// +optional
	BootMode BootMode `json:"bootMode,omitempty"`

	// bootMACAddress is the MAC address of the NIC that the machine boots
	// from, six pairs of hexadecimal digits with colons between them. Set by
	// the user. Needed if the host is not inspected, and by some BMC drivers.
	// Once set it stays.
	// +kubebuilder:validation:Pattern=`[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}`
	// +optional
	BootMACAddress string `json:"bootMACAddress,omitempty"`

	// online is whether the machine shall be on. Set by the user or by the
	// consumer. Followed while the host is available, provisioned or
	// externally provisioned. An image is put on a host only while it is true.
	Online bool `json:"online"`

	// consumerRef is the object that uses the host, such as a Metal3Machine or
	// a HostClaim. Set and cleared by the consumer. Whoever looks for a free
	// host passes by one that has it.
	// +optional
	ConsumerRef *corev1.ObjectReference `json:"consumerRef,omitempty"`

	// image is what the host shall run. Set by the user or the consumer; read
	// once the host is available and online. Another url provisions again;
	// taking image away deprovisions.
	// +optional
	Image *Image `json:"image,omitempty"`

	// userData is the Secret with user data for cloud-init or Ignition, under
	// the key userData (or value). It must be in the host's namespace. Read
	// when provisioning starts; a later change has no effect.
	// +optional
	UserData *corev1.SecretReference `json:"userData,omitempty"`

	// preprovisioningNetworkDataName is the Secret in the host's namespace
	// with the network configuration of the ramdisk, under the key
	// networkData (or value). For networks without DHCP. Used for the image
	// too if networkData is not given.
	// +optional
	PreprovisioningNetworkDataName string `json:"preprovisioningNetworkDataName,omitempty"`

	// networkData is the Secret with the network configuration of the image,
	// under the key networkData (or value). It must be in the host's
	// namespace. Read when provisioning starts; a later change has no effect.
	// +optional
	NetworkData *corev1.SecretReference `json:"networkData,omitempty"`

	// metaData is the Secret with metadata for the image, under the key
	// metaData (or value). It must be in the host's namespace. It is added to
	// uuid, name and hostname, which are always there. Read when provisioning
	// starts; a later change has no effect.
	// +optional
	MetaData *corev1.SecretReference `json:"metaData,omitempty"`

	// description is free text for people, such as the machine's rack.
	// +optional
	Description string `json:"description,omitempty"`

	// externallyProvisioned says that somebody else put a system on the
	// machine: it is neither inspected nor written to, only its power is
	// managed. Set by the user at creation, or later while the host is
	// available. Once false again the host counts as provisioned with its
	// image, and is deprovisioned if it has none.
	// +optional
	ExternallyProvisioned bool `json:"externallyProvisioned,omitempty"`

	// automatedCleaningMode is what is wiped before the host is used and after
	// it was: metadata (partition tables and the like) or disabled. Set by the
	// user or the consumer; read each time that cleaning is due.
	// +kubebuilder:default:=metadata
	// +optional
	AutomatedCleaningMode AutomatedCleaningMode `json:"automatedCleaningMode,omitempty"`

	// customDeploy is a step of the user's own ramdisk that takes the place of
	// writing an image. Set by the user or the consumer. Another method
	// provisions again; taking it away deprovisions.
	// +optional
	CustomDeploy *CustomDeploy `json:"customDeploy,omitempty"`

	// architecture is the processor's, such as x86_64 or aarch64. Set by the
	// user, or filled in from inspection. It chooses the ramdisk.
	// +optional
	Architecture string `json:"architecture,omitempty"`

	// disablePowerOff keeps the machine from ever being switched off: it is
	// rebooted instead, and stays on when it is deleted. Needs online. Set by
	// the user.
	// +optional
	DisablePowerOff bool `json:"disablePowerOff,omitempty"`

	// inspectionMode is how the hardware is found out: by an agent in a
	// ramdisk (agent, also if not given), by asking the BMC (fast), or not at
	// all (disabled). Set by the user; read when inspection is due. The
	// annotation inspect.metal3.io=disabled has the same effect as disabled.
	// +optional
	InspectionMode InspectionMode `json:"inspectionMode,omitempty"`

	// networkInterfaces say how the switch ports behind the host's NICs are to
	// be set. Set by the user. They are checked and kept; no service sets
	// switch ports yet.
	// +optional
	NetworkInterfaces []NetworkInterface `json:"networkInterfaces,omitempty"`
}

// BareMetalHost is one machine and what is wanted of it. Write down how to
// reach its BMC, and it is registered, inspected and made ready; give it an
// image, and it is provisioned; take the image away, and it is free again.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=bmh;bmhost
// +kubebuilder:metadata:labels={"clusterctl.cluster.x-k8s.io=","clusterctl.cluster.x-k8s.io/move=","clusterctl.cluster.x-k8s.io/move-hierarchy="}
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.spec) || !has(oldSelf.spec.bmc) || size(oldSelf.spec.bmc.address) == 0 || (has(self.spec) && has(self.spec.bmc) && self.spec.bmc.address == oldSelf.spec.bmc.address) || (has(self.status) && (self.status.operationalStatus == 'detached' || self.status.provisioning.state == 'registering'))",fieldPath=".spec.bmc.address",message="BMC address can not be changed if the BMH is not in the Registering state, or if the BMH is not detached; set the annotation baremetalhost.metal3.io/detached first",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="!has(self.spec) || !has(self.spec.externallyProvisioned) || !self.spec.externallyProvisioned || (has(oldSelf.spec) && has(oldSelf.spec.externallyProvisioned) && oldSelf.spec.externallyProvisioned) || (has(self.status) && self.status.provisioning.state == 'available')",fieldPath=".spec.externallyProvisioned",message="externallyProvisioned can only be enabled when in Available state",messageExpression="'externallyProvisioned can only be enabled when in Available state, currently in ' + (has(self.status) ? self.status.provisioning.state : 'none')",reason=FieldValueForbidden
// +kubebuilder:printcolumn:name="Status",type="string",JSONPath=".status.operationalStatus",description="How the host is doing",priority=1
// +kubebuilder:printcolumn:name="State",type="string",JSONPath=".status.provisioning.state",description="Where the host stands in its life"
// +kubebuilder:printcolumn:name="Consumer",type="string",JSONPath=".spec.consumerRef.name",description="Who uses the host"
// +kubebuilder:printcolumn:name="BMC",type="string",JSONPath=".spec.bmc.address",description="Address of the management controller",priority=1
// +kubebuilder:printcolumn:name="Online",type="string",JSONPath=".spec.online",description="Whether the host shall be on"
// +kubebuilder:printcolumn:name="Error",type="string",JSONPath=".status.errorType",description="What kind of operation failed last"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since the host was declared"
type BareMetalHost struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted of the host.
	Spec BareMetalHostSpec `json:"spec,omitempty"`

	// status is what is known of the host.
	Status BareMetalHostStatus `json:"status,omitempty"`
}

// BareMetalHostList is a list of BareMetalHosts.
//
// +kubebuilder:object:root=true
type BareMetalHostList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []BareMetalHost `json:"items"`
}
