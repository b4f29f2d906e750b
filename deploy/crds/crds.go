// Package crds holds the CustomResourceDefinitions of metalbus, so that a
// program can bring them along.
package crds

import "embed"

// FS has one YAML file for each kind.
//
//go:embed *.yaml
var FS embed.FS
