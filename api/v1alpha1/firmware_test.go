package v1alpha1_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

func TestValidateSetting(t *testing.T) {
	t.Parallel()
	one, eight, three, yes := 1, 8, 3, true
	schema := v1alpha1.FirmwareSchema{Spec: v1alpha1.FirmwareSchemaSpec{Schema: map[string]v1alpha1.SettingSchema{
		"NumCores":     {AttributeType: v1alpha1.AttributeInteger, LowerBound: &one},
		"Fans":         {AttributeType: v1alpha1.AttributeInteger, UpperBound: &eight},
		"Turbo":        {AttributeType: v1alpha1.AttributeEnumeration, AllowableValues: []string{"Enabled", "Disabled"}},
		"Serial":       {AttributeType: v1alpha1.AttributeString, ReadOnly: &yes},
		"Quiet":        {AttributeType: v1alpha1.AttributeBoolean},
		"AssetTag":     {AttributeType: v1alpha1.AttributeString, MaxLength: &eight},
		"Owner":        {AttributeType: v1alpha1.AttributeString, MinLength: &three},
		"SysPassword":  {AttributeType: v1alpha1.AttributePassword},
		"Secret":       {AttributeType: v1alpha1.AttributePassword},
		"Anything":     {},
		"FromTomorrow": {AttributeType: "Colour"},
	}}}
	num, text := intstr.FromInt32, intstr.FromString
	tests := map[string]struct {
		setting string
		value   intstr.IntOrString
		want    string
	}{
		"a number in range":                 {setting: "NumCores", value: num(10)},
		"the same number as text":           {setting: "NumCores", value: text("10")},
		"a lone lower bound holds":          {setting: "NumCores", value: text("0"), want: "Setting NumCores is invalid, integer 0 is below minimum value 1"},
		"a lone upper bound holds":          {setting: "Fans", value: num(9), want: "Setting Fans is invalid, integer 9 is above maximum value 8"},
		"a word for a number":               {setting: "NumCores", value: text("ten"), want: "Setting NumCores is invalid, String ten entered while integer expected"},
		"a value of the enumeration":        {setting: "Turbo", value: text("Enabled")},
		"an enumeration minds the case":     {setting: "Turbo", value: text("enabled"), want: "Setting Turbo is invalid, unknown enumeration value - enabled, allowed are Enabled, Disabled"},
		"a setting that is read-only":       {setting: "Serial", value: text("X"), want: "Setting Serial is invalid, it is ReadOnly"},
		"a boolean as text":                 {setting: "Quiet", value: text("true")},
		"no boolean":                        {setting: "Quiet", value: text("yes"), want: "Setting Quiet is invalid, yes is not a boolean, allowed are true and false"},
		"a text of the greatest length":     {setting: "AssetTag", value: text("12345678")},
		"a text that is too long":           {setting: "AssetTag", value: text("123456789"), want: "Setting AssetTag is invalid, string 123456789 length is above maximum length 8"},
		"a text of the least length":        {setting: "Owner", value: text("lab")},
		"a text that is too short":          {setting: "Owner", value: text("me"), want: "Setting Owner is invalid, string me length is below minimum length 3"},
		"a name that nobody knows":          {setting: "Nope", value: num(1), want: "Setting Nope is invalid, it is not in the associated schema"},
		"a password by its name":            {setting: "SysPassword", value: text("p"), want: "Setting SysPassword is invalid, Password fields can't be set"},
		"a password by its type":            {setting: "Secret", value: text("p"), want: "Setting Secret is invalid, passwords are immutable"},
		"a setting of no type takes all":    {setting: "Anything", value: text("x")},
		"a setting of a type not known yet": {setting: "FromTomorrow", value: text("x"), want: "Setting FromTomorrow is invalid, unexpected attribute type Colour"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			if err := schema.ValidateSetting(tt.setting, tt.value); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("ValidateSetting(%s, %s) = %q, want %q", tt.setting, tt.value.String(), got, tt.want)
			}
		})
	}
}

func TestValidateHostFirmwareComponents(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		components []string
		want       string
	}{
		"none":           {},
		"all that exist": {components: []string{"bmc", "bios", "nic:NIC.Slot.1"}},
		"each that does not exist": {
			components: []string{"BIOS", "bmc", "nic"},
			want: "component BIOS is invalid, only bmc, bios and names that begin with nic: are allowed\n" +
				"component nic is invalid, only bmc, bios and names that begin with nic: are allowed",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var hfc v1alpha1.HostFirmwareComponents
			for _, c := range tt.components {
				hfc.Spec.Updates = append(hfc.Spec.Updates, v1alpha1.FirmwareUpdate{Component: c, URL: "http://192.0.2.80/fw"})
			}
			got := ""
			if err := hfc.ValidateHostFirmwareComponents(); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
