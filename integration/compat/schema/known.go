package schema

import (
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"
)

// Known is a difference with its reason.
type Known struct {
	Difference `json:",inline"`
	// Why it is there, and what it means for users.
	Why string `json:"why"`
}

// Differences are the differences that are known.
func Differences() ([]Known, error) {
	var known []Known
	if err := yaml.UnmarshalStrict(differences, &known); err != nil {
		return nil, fmt.Errorf("read differences.yaml: %w", err)
	}
	return known, nil
}

// Check sorts what was found into differences that nobody knows, and known ones
// that are not there or have no reason.
func Check(found []Difference, known []Known) (unknown []Difference, stale []Known) {
	for _, d := range found {
		if !slices.ContainsFunc(known, func(k Known) bool { return k.Difference == d }) {
			unknown = append(unknown, d)
		}
	}
	for _, k := range known {
		if k.Why == "" || !slices.Contains(found, k.Difference) {
			stale = append(stale, k)
		}
	}
	return unknown, stale
}
