// Package schema compares our CustomResourceDefinitions with a stored
// description of those that users come with: names, columns, fields, types and
// what limits values. Each difference has to be known and have a reason.
package schema

import _ "embed"

// upstream is the description, differences are those that are known.
var (
	//go:embed upstream.yaml
	upstream []byte
	//go:embed differences.yaml
	differences []byte
)
