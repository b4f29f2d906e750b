package bus

import (
	"bytes"
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
)

// keepUnknown is the JSON of a new state with those fields of the old state
// that this version's types do not have, so that an older service does not
// drop what a newer one wrote.
//
// Fields of the state itself are always kept. Those of an object within it are
// kept while it is the same object: its "id" is the same, or all that is known
// of it. old is the old state as read, raw its JSON, fresh the new state's.
func keepUnknown(old any, raw, fresh []byte) ([]byte, error) {
	canonical, err := json.Marshal(old)
	if err != nil {
		return nil, err
	}
	var was, known, now any
	for _, d := range []struct {
		data []byte
		into *any
	}{{raw, &was}, {canonical, &known}, {fresh, &now}} {
		dec := json.NewDecoder(bytes.NewReader(d.data))
		dec.UseNumber() // numbers as they are written
		if err := dec.Decode(d.into); err != nil {
			return nil, err
		}
	}
	carry(reflect.TypeOf(old), was, known, now, true)
	return json.Marshal(now)
}

// carry walks three JSON values of one type: the old with unknown fields and
// without, and the new one, which it completes.
func carry(t reflect.Type, was, known, now any, same bool) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case opaque(t):
	case t.Kind() == reflect.Struct:
		carryObject(fieldsOf(t), was, known, now, same)
	case t.Kind() == reflect.Map:
		carryObject(func(string) reflect.Type { return t.Elem() }, was, known, now, same)
	case t.Kind() == reflect.Slice || t.Kind() == reflect.Array:
		carryList(t.Elem(), was, known, now)
	}
}

func carryObject(field func(name string) reflect.Type, was, known, now any, same bool) {
	w, ok1 := was.(map[string]any)
	k, _ := known.(map[string]any)
	n, ok2 := now.(map[string]any)
	if !ok1 || !ok2 {
		return
	}
	same = same || sameObject(k, n)
	for name, value := range w {
		t := field(name)
		_, there := n[name]
		switch {
		case t != nil && there:
			carry(t, value, k[name], n[name], false)
		case t == nil && !there && same:
			n[name] = value
		}
	}
}

func carryList(elem reflect.Type, was, known, now any) {
	w, _ := was.([]any)
	k, _ := known.([]any)
	n, _ := now.([]any)
	for i := range min(len(w), len(k), len(n)) {
		carry(elem, w[i], k[i], n[i], false)
	}
}

func sameObject(a, b map[string]any) bool {
	if id, ok := a["id"].(string); ok && id != "" {
		return id == b["id"]
	}
	return reflect.DeepEqual(a, b)
}

// opaque types write their own JSON: there are no fields to look for.
func opaque(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// fieldsOf finds the type of a JSON field of a struct, nil for one that it does not have.
func fieldsOf(t reflect.Type) func(name string) reflect.Type {
	return func(name string) reflect.Type {
		for _, f := range reflect.VisibleFields(t) {
			if f.IsExported() && !f.Anonymous && jsonName(f) == name {
				return f.Type
			}
		}
		return nil
	}
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" {
		return f.Name
	}
	return name
}
