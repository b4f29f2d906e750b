package admission

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

func validateHostAnnotations(host *v1alpha1.BareMetalHost) field.ErrorList {
	path := field.NewPath("metadata", "annotations")
	return slices.Concat(
		validateStatusAnnotation(host.Annotations[v1alpha1.StatusAnnotation], path.Key(v1alpha1.StatusAnnotation)),
		validateRebootAnnotations(host.Annotations, path),
		validateInspectAnnotation(host, path.Key(v1alpha1.InspectAnnotationPrefix)),
		validateHardwareDetailsAnnotation(host, path.Key(v1alpha1.HardwareDetailsAnnotation)),
	)
}

// validateStatusAnnotation wants a status that could be stored. Every value
// that a host of ours can have is one.
func validateStatusAnnotation(value string, path *field.Path) field.ErrorList {
	if value == "" {
		return nil
	}
	var status v1alpha1.BareMetalHostStatus
	if err := decodeStrict(value, &status); err != nil {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, fmt.Sprintf("error decoding status annotation: %v", err))}
	}
	var errs field.ErrorList
	if s := status.OperationalStatus; !isOperationalStatus(s) {
		errs = append(errs, field.Invalid(path, field.OmitValueType{},
			fmt.Sprintf("invalid operationalStatus '%s' in the %s annotation", s, v1alpha1.StatusAnnotation)))
	}
	if e := status.ErrorType; !isErrorType(e) {
		errs = append(errs, field.Invalid(path, field.OmitValueType{},
			fmt.Sprintf("invalid errorType '%s' in the %s annotation", e, v1alpha1.StatusAnnotation)))
	}
	return errs
}

func isOperationalStatus(s v1alpha1.OperationalStatus) bool {
	switch s {
	case "", v1alpha1.OperationalStatusOK, v1alpha1.OperationalStatusDiscovered, v1alpha1.OperationalStatusError,
		v1alpha1.OperationalStatusDelayed, v1alpha1.OperationalStatusDetached, v1alpha1.OperationalStatusServicing:
		return true
	default:
		return false
	}
}

func isErrorType(e v1alpha1.ErrorType) bool {
	switch e {
	case "", v1alpha1.ProvisionedRegistrationError, v1alpha1.RegistrationError, v1alpha1.InspectionError,
		v1alpha1.PreparationError, v1alpha1.ProvisioningError, v1alpha1.PowerManagementError,
		v1alpha1.DetachError, v1alpha1.ServicingError:
		return true
	default:
		return false
	}
}

// validateRebootAnnotations looks at every annotation that asks for a reboot,
// of a host or of a claim.
func validateRebootAnnotations(annotations map[string]string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		value := annotations[key]
		if value == "" || !v1alpha1.IsRebootAnnotation(key) {
			continue
		}
		if problem := problemWithReboot(value); problem != "" {
			errs = append(errs, field.Invalid(path.Key(key), value, problem))
		}
	}
	return errs
}

func problemWithReboot(value string) string {
	var args v1alpha1.RebootAnnotationArguments
	if err := json.Unmarshal([]byte(value), &args); err != nil {
		return fmt.Sprintf("failed to unmarshal the data from the reboot.metal3.io annotation: %v; "+
			`leave it empty, or write JSON such as {"mode":"hard"}`, err)
	}
	switch args.Mode {
	case "", v1alpha1.RebootModeHard, v1alpha1.RebootModeSoft:
		return ""
	default:
		return `invalid mode in the reboot.metal3.io annotation, allowed are "hard", "soft" or ""`
	}
}

func validateInspectAnnotation(host *v1alpha1.BareMetalHost, path *field.Path) field.ErrorList {
	value := host.Annotations[v1alpha1.InspectAnnotationPrefix]
	if value == "" {
		return nil
	}
	const disabled = v1alpha1.InspectAnnotationValueDisabled
	var errs field.ErrorList
	if value != disabled {
		errs = append(errs, field.NotSupported(path, value, []string{disabled, ""}))
		errs[0].Detail = `invalid value for the inspect.metal3.io annotation, allowed are "disabled" or ""; leave it empty to inspect again`
	}
	mode := host.Spec.InspectionMode
	if mode != "" && (value == disabled) != (mode == v1alpha1.InspectionModeDisabled) {
		errs = append(errs, field.Invalid(path, value,
			"inspect.metal3.io annotation and inspectionMode field have contradicting values; remove the annotation"))
	}
	return errs
}

// validateHardwareDetailsAnnotation wants hardware that inspection would not
// write over.
func validateHardwareDetailsAnnotation(host *v1alpha1.BareMetalHost, path *field.Path) field.ErrorList {
	value := host.Annotations[v1alpha1.HardwareDetailsAnnotation]
	if value == "" {
		return nil
	}
	var errs field.ErrorList
	if !host.InspectionDisabled() {
		errs = append(errs, field.Forbidden(path, "when hardware details are provided, inspection must be disabled "+
			"(either via inspect.metal3.io annotation or inspectionMode field)"))
	}
	var details v1alpha1.HardwareDetails
	if err := decodeStrict(value, &details); err != nil {
		errs = append(errs, field.Invalid(path, field.OmitValueType{},
			fmt.Sprintf("error decoding the inspect.metal3.io/hardwaredetails annotation: %v", err)))
	}
	return errs
}

// decodeStrict reads one JSON object without fields that v does not have.
func decodeStrict(text string, v any) error {
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(v); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is something behind the JSON object")
	}
	return nil
}
