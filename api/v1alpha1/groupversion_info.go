package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of every kind in this package.
//
//nolint:gochecknoglobals // Go has no constant structs, and Kubernetes programs expect this name.
var GroupVersion = schema.GroupVersion{Group: "metal3.io", Version: "v1alpha1"}

// AddToScheme makes all kinds of the group known to s. It never fails; the
// error is there so that it can be used where apimachinery's AddToScheme can.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&BareMetalHost{}, &BareMetalHostList{},
		&HardwareData{}, &HardwareDataList{},
		&PreprovisioningImage{}, &PreprovisioningImageList{},
		&HostFirmwareSettings{}, &HostFirmwareSettingsList{},
		&FirmwareSchema{}, &FirmwareSchemaList{},
		&HostFirmwareComponents{}, &HostFirmwareComponentsList{},
		&BMCEventSubscription{}, &BMCEventSubscriptionList{},
		&DataImage{}, &DataImageList{},
		&HostUpdatePolicy{}, &HostUpdatePolicyList{},
		&HostClaim{}, &HostClaimList{},
		&HostDeployPolicy{}, &HostDeployPolicyList{},
		&BareMetalSwitch{}, &BareMetalSwitchList{},
		&HostNetworkAttachment{}, &HostNetworkAttachmentList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// Resource qualifies the plural name of a kind, such as "baremetalhosts", with
// the group.
func Resource(plural string) schema.GroupResource {
	return GroupVersion.WithResource(plural).GroupResource()
}
