package bus

import (
	"reflect"
	"sync"
)

// secretTypes remembers by type what secretIn found.
var secretTypes sync.Map //nolint:gochecknoglobals // a cache of what the types of the program are

// secretIn is the path of a field in the type of v that says of itself that it
// holds a secret, and "" if there is none: the content of a Kubernetes Secret,
// or a field with Kubernetes' tag datapolicy.
func secretIn(v any) string {
	t := reflect.TypeOf(v)
	if t == nil {
		return ""
	}
	if path, ok := secretTypes.Load(t); ok {
		return path.(string)
	}
	path := findSecret(t, t.String(), map[reflect.Type]bool{})
	secretTypes.Store(t, path)
	return path
}

func findSecret(t reflect.Type, path string, seen map[reflect.Type]bool) string {
	if seen[t] {
		return ""
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return findSecret(t.Elem(), path, seen)
	case reflect.Struct:
		return findSecretField(t, path, seen)
	default:
		return ""
	}
}

func findSecretField(t reflect.Type, path string, seen map[reflect.Type]bool) string {
	if t.PkgPath() == "k8s.io/api/core/v1" && t.Name() == "Secret" {
		return path
	}
	for f := range t.Fields() {
		if !f.IsExported() {
			continue
		}
		if f.Tag.Get("datapolicy") != "" {
			return path + "." + f.Name
		}
		if found := findSecret(f.Type, path+"."+f.Name, seen); found != "" {
			return found
		}
	}
	return ""
}
