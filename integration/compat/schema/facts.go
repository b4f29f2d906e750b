package schema

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Facts are what a definition says: for each place, such as "BareMetalHost
// spec.image.url", properties such as type and their values.
type Facts map[string]map[string]string

func (f Facts) set(place, property string, value any) {
	if f[place] == nil {
		f[place] = map[string]string{}
	}
	text := fmt.Sprint(value)
	switch text {
	case "", "false", "[]":
	default:
		f[place][property] = text
	}
}

// Difference is one property that is not the same.
type Difference struct {
	// Place is where: the kind, and the path of a field.
	Place string `json:"place"`
	// Property is what of it; "is there" if the place is missing on one side.
	Property string `json:"property"`
	// Theirs and Ours are the values, "" for none.
	Theirs string `json:"theirs,omitempty"`
	Ours   string `json:"ours,omitempty"`
}

func (d Difference) String() string {
	side := func(value string) string {
		if value == "" {
			return "nothing"
		}
		return value
	}
	return fmt.Sprintf("%s: %s: theirs %s, ours %s", d.Place, d.Property, side(d.Theirs), side(d.Ours))
}

// present is the property of a place that is missing on one side.
const present = "is there"

// Compare lists what is not the same, by place and property.
func Compare(theirs, ours Facts) []Difference {
	var all []Difference
	for _, place := range union(theirs, ours) {
		their, inTheirs := theirs[place]
		our, inOurs := ours[place]
		if inTheirs != inOurs {
			all = append(all, Difference{Place: place, Property: present, Theirs: yes(inTheirs), Ours: yes(inOurs)})
			continue
		}
		for _, property := range union(their, our) {
			if their[property] != our[property] {
				all = append(all, Difference{place, property, their[property], our[property]})
			}
		}
	}
	return all
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return ""
}

func union[V any](a, b map[string]V) []string {
	keys := append(slices.Collect(maps.Keys(a)), slices.Collect(maps.Keys(b))...)
	slices.SortFunc(keys, cmp.Compare[string])
	return slices.Compact(keys)
}
