package v1alpha1

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// SchemaSettingError says why a firmware setting can not have a value.
type SchemaSettingError struct {
	name    string
	message string
}

// Error names the setting and what is wrong with its value.
func (e SchemaSettingError) Error() string {
	return fmt.Sprintf("Setting %s is invalid, %s", e.name, e.message)
}

// ValidateSetting says whether the setting of this name can take value. The
// error is a SchemaSettingError.
func (f *FirmwareSchema) ValidateSetting(name string, value intstr.IntOrString) error {
	schema, known := f.Spec.Schema[name]
	if !known {
		return SchemaSettingError{name, "it is not in the associated schema"}
	}
	return schema.Validate(name, value)
}

// Validate says whether the setting, called name, can take value. A number and
// the same number as text are one value. The error is a SchemaSettingError.
func (s *SettingSchema) Validate(name string, value intstr.IntOrString) error {
	var problem string
	switch {
	case s.ReadOnly != nil && *s.ReadOnly:
		problem = "it is ReadOnly"
	case strings.Contains(name, "Password"):
		problem = "Password fields can't be set"
	default:
		problem = s.problemWith(value.String())
	}
	if problem != "" {
		return SchemaSettingError{name, problem}
	}
	return nil
}

// problemWith says what the type of the setting has against a value; nothing if
// it fits.
func (s *SettingSchema) problemWith(value string) string {
	switch s.AttributeType {
	case "":
		return ""
	case AttributeEnumeration:
		return s.problemWithEnumeration(value)
	case AttributeInteger:
		return s.problemWithInteger(value)
	case AttributeString:
		return s.problemWithString(value)
	case AttributeBoolean:
		if value == "true" || value == "false" {
			return ""
		}
		return value + " is not a boolean, allowed are true and false"
	case AttributePassword:
		return "passwords are immutable"
	default:
		return "unexpected attribute type " + s.AttributeType
	}
}

func (s *SettingSchema) problemWithEnumeration(value string) string {
	if slices.Contains(s.AllowableValues, value) {
		return ""
	}
	return fmt.Sprintf("unknown enumeration value - %s, allowed are %s", value, strings.Join(s.AllowableValues, ", "))
}

func (s *SettingSchema) problemWithInteger(value string) string {
	n, err := strconv.Atoi(value)
	switch {
	case err != nil:
		return fmt.Sprintf("String %s entered while integer expected", value)
	case s.LowerBound != nil && n < *s.LowerBound:
		return fmt.Sprintf("integer %d is below minimum value %d", n, *s.LowerBound)
	case s.UpperBound != nil && n > *s.UpperBound:
		return fmt.Sprintf("integer %d is above maximum value %d", n, *s.UpperBound)
	default:
		return ""
	}
}

func (s *SettingSchema) problemWithString(value string) string {
	switch {
	case s.MinLength != nil && len(value) < *s.MinLength:
		return fmt.Sprintf("string %s length is below minimum length %d", value, *s.MinLength)
	case s.MaxLength != nil && len(value) > *s.MaxLength:
		return fmt.Sprintf("string %s length is above maximum length %d", value, *s.MaxLength)
	default:
		return ""
	}
}
