package admission

import (
	"fmt"
	"net"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/bmcaddress"
)

// validateBMC wants an address that can be used, and a host that asks of it
// only what its driver can do.
func validateBMC(host *v1alpha1.BareMetalHost, spec *field.Path) field.ErrorList {
	bmc := host.Spec.BMC
	if bmc.Address == "" {
		return nil
	}
	address, err := bmcaddress.Parse(bmc.Address, bmc.DisableCertificateVerification)
	if err != nil {
		return field.ErrorList{field.Invalid(spec.Child("bmc", "address"), field.OmitValueType{}, err.Error())}
	}
	return append(validateBootMAC(host, address, spec.Child("bootMACAddress")),
		validateDriver(host, address, spec)...)
}

func validateBootMAC(host *v1alpha1.BareMetalHost, address bmcaddress.Address, path *field.Path) field.ErrorList {
	mac := host.Spec.BootMACAddress
	if mac == "" {
		if address.Capabilities().NeedsMAC || host.InspectionDisabled() {
			return field.ErrorList{field.Required(path, driver(address)+" requires a BootMACAddress value")}
		}
		return nil
	}
	if _, err := net.ParseMAC(mac); err != nil {
		return field.ErrorList{field.Invalid(path, mac, err.Error())}
	}
	return nil
}

// validateDriver refuses wishes that the driver cannot fulfil.
func validateDriver(host *v1alpha1.BareMetalHost, address bmcaddress.Address, spec *field.Path) field.ErrorList {
	var errs field.ErrorList
	can := address.Capabilities()
	refuse := func(path *field.Path, what string) {
		errs = append(errs, field.Forbidden(path, driver(address)+" does not support "+what))
	}
	if raid := host.Spec.RAID; raid != nil && len(raid.HardwareRAIDVolumes) > 0 && !can.HardwareRAID {
		refuse(spec.Child("raid", "hardwareRAIDVolumes"), "configuring RAID; use softwareRAIDVolumes")
	}
	if host.Spec.BootMode == v1alpha1.UEFISecureBoot && !can.SecureBoot {
		refuse(spec.Child("bootMode"), "secure boot; use UEFI or legacy")
	}
	if host.Spec.InspectionMode == v1alpha1.InspectionModeFast && !can.FastInspection {
		refuse(spec.Child("inspectionMode"), "fast (out-of-band) inspection; use agent or disabled")
	}
	return errs
}

// driver is how messages call the kind of BMC.
func driver(address bmcaddress.Address) string {
	return fmt.Sprintf("BMC driver %s", address.Type)
}
