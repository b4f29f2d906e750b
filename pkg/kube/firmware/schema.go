package firmware

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
)

// Which schemas are ours: those of others are left alone.
const (
	managedByLabel = "app.kubernetes.io/managed-by"
	managedBy      = "metalbus"
)

// schemaName is the name of the schema that machines with the same settings share.
func schemaName(schema map[string]v1alpha1.SettingSchema) string {
	list := make([]string, 0, len(schema))
	for name, s := range schema {
		list = append(list, fmt.Sprintf("{%s %s %v %s %s %s %s %s}", name, s.AttributeType, s.AllowableValues,
			optional(s.LowerBound), optional(s.UpperBound), optional(s.MinLength), optional(s.MaxLength), optional(s.ReadOnly)))
	}
	slices.Sort(list)
	sum := sha256.Sum256([]byte(fmt.Sprintf("%v", list)))
	return "schema-" + hex.EncodeToString(sum[:4])
}

func optional[T any](v *T) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprint(*v)
}

// schemaOf is the object that says which values the settings of a host's machine,
// and of those like it, can take.
func schemaOf(o *v1alpha1.BareMetalHost, f event.Firmware) *v1alpha1.FirmwareSchema {
	s := &v1alpha1.FirmwareSchema{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: schemaName(f.Schema), Labels: map[string]string{managedByLabel: managedBy}},
		Spec:       v1alpha1.FirmwareSchemaSpec{Schema: f.Schema},
	}
	if s.Spec.Schema == nil {
		s.Spec.Schema = map[string]v1alpha1.SettingSchema{}
	}
	if hw := o.Status.HardwareDetails; hw != nil {
		s.Spec.HardwareVendor, s.Spec.HardwareModel = hw.SystemVendor.Manufacturer, hw.SystemVendor.ProductName
	}
	return s
}
