package lifecycle_test

import (
	"testing"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

func faultyHost(t v1alpha1.ErrorType, message string) lifecycle.Host {
	h := lifecycle.Host{}
	h.Intent.Spec.BMC.Address = "redfish://192.0.2.1"
	if t != "" {
		h.Intent.Invalid = &event.Problem{Type: t, Message: message}
	}
	return h
}

func TestRefused(t *testing.T) {
	const register, inspect, prepare, provision = v1alpha1.RegistrationError, v1alpha1.InspectionError, v1alpha1.PreparationError, v1alpha1.ProvisioningError
	for name, c := range map[string]struct {
		fault, of v1alpha1.ErrorType
		want      bool
	}{
		"no fault":                               {"", provision, false},
		"a fault of the address, registered":     {register, register, true},
		"a fault of the address, provisioned":    {register, provision, true},
		"a fault of the volumes, registered":     {prepare, register, false},
		"a fault of the volumes, inspected":      {prepare, inspect, false},
		"a fault of the volumes, prepared":       {prepare, prepare, true},
		"a fault of the image, prepared":         {provision, prepare, false},
		"a fault of the image, provisioned":      {provision, provision, true},
		"a fault of the inspection, inspected":   {inspect, inspect, true},
		"a fault of the inspection, provisioned": {inspect, provision, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := lifecycle.Refused(faultyHost(c.fault, "x"), c.of); got != c.want {
				t.Errorf("refused: %t", got)
			}
		})
	}
}

func TestFaultNews(t *testing.T) {
	const register, provision = v1alpha1.RegistrationError, v1alpha1.ProvisioningError
	registered := func(h lifecycle.Host) lifecycle.Host { h.Registration.Registered = true; return h }
	unmanaged := func(h lifecycle.Host) lifecycle.Host { h.Intent.Spec.BMC.Address = ""; return h }
	for name, c := range map[string]struct {
		before, after lifecycle.Host
		want          string
	}{
		"none":                                {faultyHost("", ""), faultyHost("", ""), ""},
		"a new one":                           {faultyHost("", ""), faultyHost(provision, "x"), "ProvisioningError"},
		"the same":                            {faultyHost(provision, "x"), faultyHost(provision, "x"), ""},
		"another one":                         {faultyHost(provision, "x"), faultyHost(provision, "y"), "ProvisioningError"},
		"one that goes":                       {faultyHost(provision, "x"), faultyHost("", ""), ""},
		"one that the registration tells of":  {faultyHost("", ""), faultyHost(register, "x"), ""},
		"one of a host that is registered":    {registered(faultyHost("", "")), registered(faultyHost(register, "x")), "RegistrationError"},
		"one of a host that nobody registers": {unmanaged(faultyHost("", "")), unmanaged(faultyHost(register, "x")), "RegistrationError"},
	} {
		t.Run(name, func(t *testing.T) {
			got := lifecycle.FaultNews(c.before, c.after)
			if (got == nil) != (c.want == "") || (got != nil && (got.Reason != c.want || !got.Warning)) {
				t.Errorf("got %+v, want %q", got, c.want)
			}
		})
	}
}
