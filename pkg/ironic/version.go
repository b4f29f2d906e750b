package ironic

import (
	"fmt"
	"strconv"
	"strings"
)

// The API versions that this package can work with: 1.N.
const (
	oldestMinor = 81
	newestMinor = 115
)

// Version is the API version that is spoken with an Ironic: 1.Minor.
type Version struct {
	// Minor is what is spoken, Newest the newest that the server has.
	Minor, Newest int
	ironic        string
}

// String is the version as Ironic writes it.
func (v Version) String() string { return fmt.Sprintf("1.%d", v.Minor) }

// Feature is something that not every version has.
type Feature int

// The features that are asked for, with the version that brought them.
const (
	FeatureParent            Feature = 83  // parent_node
	FeatureAgentInspection   Feature = 84  // inspection by the agent without ironic-inspector
	FeatureFirmwareInterface Feature = 86  // firmware components and updates
	FeatureService           Feature = 87  // changes of a node in use
	FeatureVirtualMedia      Feature = 89  // attach and detach of media
	FeatureVirtualMediaGet   Feature = 93  // which media are attached
	FeatureDisablePowerOff   Feature = 95  // nodes that are never powered off
	FeatureHealth            Feature = 109 // the health that the BMC reports
	FeatureDeployAbort       Feature = 110 // abort of a deployment that waits
	FeatureServiceAbort      Feature = 111 // abort of a service that failed
)

func (f Feature) String() string {
	return map[Feature]string{
		FeatureParent: "parent nodes", FeatureAgentInspection: "inspection by the agent", FeatureFirmwareInterface: "firmware components",
		FeatureService: "servicing", FeatureVirtualMedia: "the virtual media API", FeatureVirtualMediaGet: "reading virtual media",
		FeatureDisablePowerOff: "disablePowerOff", FeatureHealth: "the health of nodes",
		FeatureDeployAbort: "the abort of a waiting deployment", FeatureServiceAbort: "the abort of a failed service",
	}[f]
}

// Has reports whether the version has the feature.
func (v Version) Has(f Feature) bool { return v.Minor >= int(f) }

// Needs is nil if the version has the feature, else a *VersionError.
func (v Version) Needs(f Feature) error {
	if v.Has(f) {
		return nil
	}
	return &VersionError{Ironic: v.ironic, Feature: f, Found: v}
}

// VersionError says that a feature needs a newer Ironic.
type VersionError struct {
	Ironic  string
	Feature Feature
	Found   Version
}

// Error names the version needed and the one found.
func (e *VersionError) Error() string {
	return fmt.Sprintf("%s needs Ironic API version 1.%d or newer, but ironic %s has %s", e.Feature, int(e.Feature), e.Ironic, e.Found)
}

// Is makes a VersionError an ErrUnsupported.
func (e *VersionError) Is(target error) bool { return target == ErrUnsupported }

// serverVersions is what the root of the API says.
type serverVersions struct {
	Version  *span  `json:"version"`
	Default  *span  `json:"default_version"`
	Versions []span `json:"versions"`
}

type span struct {
	Newest string `json:"version"`
	Oldest string `json:"min_version"`
}

// choose is the newest version that both sides have.
func (s serverVersions) choose(ironic string) (Version, error) {
	found := s.Version
	switch {
	case found != nil:
	case s.Default != nil:
		found = s.Default
	case len(s.Versions) > 0:
		found = &s.Versions[0]
	default:
		return Version{}, fmt.Errorf("the answer names no version: is this the Ironic API?")
	}
	newest, err := minor(found.Newest)
	if err != nil {
		return Version{}, err
	}
	oldest, err := minor(found.Oldest)
	if err != nil {
		return Version{}, err
	}
	switch {
	case newest < oldestMinor:
		return Version{}, fmt.Errorf("the newest API version is %s, and 1.%d or newer is needed (Ironic 21.4, 2023.1): update Ironic", found.Newest, oldestMinor)
	case oldest > newestMinor:
		return Version{}, fmt.Errorf("the oldest API version is %s, and at most 1.%d is known here: update metalbus", found.Oldest, newestMinor)
	default:
		return Version{Minor: min(newest, newestMinor), Newest: newest, ironic: ironic}, nil
	}
}

// minor is N of "1.N".
func minor(version string) (int, error) {
	major, rest, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(rest)
	if err != nil || major != "1" {
		return 0, fmt.Errorf("the API version %q is not like 1.%d", scrub(version), oldestMinor)
	}
	return n, nil
}
