package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// FieldsKnown is a health check: the API keeps every field of a BareMetalHost
// that this program writes or reads. CRDs that are older than the program drop
// some of them without a word. Once it has passed it asks no more.
func (c *Cluster) FieldsKnown() func(context.Context) error {
	var mu sync.Mutex
	passed := false
	return func(ctx context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		if passed {
			return nil
		}
		missing, err := c.MissingFields(ctx)
		if err != nil {
			return err
		}
		if len(missing) > 0 {
			return fmt.Errorf("the CRD baremetalhosts.metal3.io is older than this program and does not have %s; apply the CRDs of this version", strings.Join(missing, ", "))
		}
		passed = true
		return nil
	}
}

// property is a part of an OpenAPI schema.
type property struct {
	Properties map[string]property `json:"properties"`
}

// MissingFields are the fields of a BareMetalHost that the API does not have,
// as "status.conditions". An API that does not show its schema has all.
func (c *Cluster) MissingFields(ctx context.Context) ([]string, error) {
	text, err := c.openAPI(ctx, "apis/"+v1alpha1.GroupVersion.String())
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("ask for the schema: %w", err)
	}
	var doc struct {
		Components struct {
			Schemas map[string]property `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	for name, schema := range doc.Components.Schemas {
		if strings.HasSuffix(name, ".BareMetalHost") {
			return absent(schema), nil
		}
	}
	return []string{"the kind BareMetalHost"}, nil
}

func (c *Cluster) openAPI(ctx context.Context, group string) ([]byte, error) {
	d, err := discovery.NewDiscoveryClientForConfig(c.rest)
	if err != nil {
		return nil, err
	}
	return d.RESTClient().Get().AbsPath("/openapi/v3/"+group).SetHeader("Accept", "application/json").Do(ctx).Raw()
}

// absent are the fields that the Go types have and a schema has not, two
// levels deep: that is where versions differ.
func absent(schema property) []string {
	var missing []string
	for part, t := range map[string]reflect.Type{
		"spec": reflect.TypeFor[v1alpha1.BareMetalHostSpec](), "status": reflect.TypeFor[v1alpha1.BareMetalHostStatus](),
		"status.provisioning": reflect.TypeFor[v1alpha1.ProvisionStatus](),
	} {
		at := schema
		for name := range strings.SplitSeq(part, ".") {
			at = at.Properties[name]
		}
		for field := range t.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if _, there := at.Properties[name]; !there && name != "" {
				missing = append(missing, part+"."+name)
			}
		}
	}
	slices.Sort(missing)
	return missing
}
