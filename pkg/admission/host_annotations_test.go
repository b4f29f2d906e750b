package admission_test

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/admission"
)

const (
	statusKey  = "metadata.annotations[baremetalhost.metal3.io/status]"
	inspectKey = "metadata.annotations[inspect.metal3.io]"
	detailsKey = "metadata.annotations[inspect.metal3.io/hardwaredetails]"
)

func TestValidateHostAnnotations(t *testing.T) {
	t.Parallel()
	details := func(value string) *host {
		return newHost(inspection("disabled"), annotated("inspect.metal3.io/hardwaredetails", value))
	}
	status := func(value string) *host { return newHost(annotated("baremetalhost.metal3.io/status", value)) }
	reboot := func(key, value string) *host { return newHost(annotated(key, value)) }
	tests := map[string]struct {
		good, bad *host
		want      finding
	}{
		"a status that is no JSON": {
			good: status(""),
			bad:  status("provisioned"),
			want: finding{invalid, statusKey, "error decoding status annotation: invalid character 'p'"},
		},
		"a status with a field that is not known": {
			good: status(`{"operationalStatus":"OK","provisioning":{"state":"provisioned","ID":"x"},"errorMessage":"","poweredOn":true}`),
			bad:  status(`{"operationalStatus":"OK","colour":"red"}`),
			want: finding{invalid, statusKey, `error decoding status annotation: json: unknown field "colour"`},
		},
		"a status with something behind it": {
			good: status(`{"errorCount":1}` + "\n"),
			bad:  status(`{"errorCount":1} {}`),
			want: finding{invalid, statusKey, "error decoding status annotation: "},
		},
		"a status with an operational status that there is not": {
			good: status(`{"operationalStatus":"servicing"}`),
			bad:  status(`{"operationalStatus":"fine"}`),
			want: finding{invalid, statusKey, "invalid operationalStatus 'fine' in the baremetalhost.metal3.io/status annotation"},
		},
		"a status with an error that there is not": {
			good: status(`{"errorType":"servicing error"}`),
			bad:  status(`{"errorType":"bad luck"}`),
			want: finding{invalid, statusKey, "invalid errorType 'bad luck' in the baremetalhost.metal3.io/status annotation"},
		},
		"a reboot that is no JSON": {
			good: reboot("reboot.metal3.io", ""),
			bad:  reboot("reboot.metal3.io", "now"),
			want: finding{
				invalid, "metadata.annotations[reboot.metal3.io]",
				"failed to unmarshal the data from the reboot.metal3.io annotation: invalid character",
			},
		},
		"a reboot of a mode that there is not": {
			good: reboot("reboot.metal3.io/mine", `{"mode":"hard","force":true}`),
			bad:  reboot("reboot.metal3.io/mine", `{"mode":"Hard"}`),
			want: finding{
				invalid, "metadata.annotations[reboot.metal3.io/mine]",
				`invalid mode in the reboot.metal3.io annotation, allowed are "hard", "soft" or ""`,
			},
		},
		"an inspection by another word": {
			good: newHost(annotated("inspect.metal3.io", "")),
			bad:  newHost(annotated("inspect.metal3.io", "true")),
			want: finding{
				field.ErrorTypeNotSupported, inspectKey,
				`invalid value for the inspect.metal3.io annotation, allowed are "disabled" or ""`,
			},
		},
		"inspection disabled here and not there": {
			good: newHost(inspection("disabled"), annotated("inspect.metal3.io", "disabled")),
			bad:  newHost(inspection("agent"), annotated("inspect.metal3.io", "disabled")),
			want: finding{invalid, inspectKey, "inspect.metal3.io annotation and inspectionMode field have contradicting values"},
		},
		"hardware for a host that is inspected": {
			good: newHost(annotated("inspect.metal3.io", "disabled", "inspect.metal3.io/hardwaredetails", `{"hostname":"a"}`)),
			bad:  newHost(annotated("inspect.metal3.io/hardwaredetails", `{"hostname":"a"}`)),
			want: finding{forbidden, detailsKey, "when hardware details are provided, inspection must be disabled"},
		},
		"hardware that is no JSON": {
			good: details(`{"nics":[{"mac":"00:00:5e:00:53:01"}],"ramMebibytes":4096}`),
			bad:  details(`{"ram":4096}`),
			want: finding{invalid, detailsKey, `error decoding the inspect.metal3.io/hardwaredetails annotation: json: unknown field "ram"`},
		},
		"the detached annotation may hold anything": {
			good: newHost(annotated("baremetalhost.metal3.io/detached", "by me, until Friday {")),
			bad:  newHost(annotated("reboot.metal3.io", "null and void")),
			want: finding{invalid, "metadata.annotations[reboot.metal3.io]", "failed to unmarshal"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, admission.ValidateHost(tt.good), nil)
			check(t, admission.ValidateHost(tt.bad), &tt.want)
		})
	}
}

// What is written into the annotation of a host that moves must be let in at
// the other side.
func TestStatusAnnotationTakesEveryStatusOfOurs(t *testing.T) {
	t.Parallel()
	for _, operational := range []v1alpha1.OperationalStatus{"", "OK", "discovered", "error", "delayed", "detached", "servicing"} {
		for _, errorType := range []v1alpha1.ErrorType{
			"", v1alpha1.ProvisionedRegistrationError, v1alpha1.RegistrationError, v1alpha1.InspectionError, v1alpha1.PreparationError,
			v1alpha1.ProvisioningError, v1alpha1.PowerManagementError, v1alpha1.DetachError, v1alpha1.ServicingError,
		} {
			value, err := json.Marshal(v1alpha1.BareMetalHostStatus{OperationalStatus: operational, ErrorType: errorType})
			if err != nil {
				t.Fatal(err)
			}
			check(t, admission.ValidateHost(newHost(annotated(v1alpha1.StatusAnnotation, string(value)))), nil)
		}
	}
}
