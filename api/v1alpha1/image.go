package v1alpha1

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// ChecksumType is the algorithm of an image's checksum.
//
// +kubebuilder:validation:Enum=md5;sha256;sha512;auto
type ChecksumType string

const (
	// MD5 is a checksum of 32 hexadecimal digits. Prefer SHA256.
	MD5 ChecksumType = "md5"
	// SHA256 is a checksum of 64 hexadecimal digits.
	SHA256 ChecksumType = "sha256"
	// SHA512 is a checksum of 128 hexadecimal digits.
	SHA512 ChecksumType = "sha512"
	// AutoChecksum finds the algorithm from the checksum's length.
	AutoChecksum ChecksumType = "auto"
)

// DiskFormatLiveISO is the disk format of an image that is booted from virtual
// media or the network and not written to a disk.
const DiskFormatLiveISO = "live-iso"

// schemeOCI is the URL scheme of images that lie in a container registry.
const schemeOCI = "oci"

// Image is what a host runs: where it lies, how to know that it arrived whole,
// and what it is made of.
type Image struct {
	// url is where the image lies: http, https, ftp, gopher or oci. Set by the
	// user or the consumer of the host; read by the backend that fetches it.
	// A provisioned host is deprovisioned and provisioned again when this
	// changes.
	URL string `json:"url"`

	// checksum is the image's checksum, or the URL of a file that has it.
	// Needed for every image but a live ISO and one in a registry (oci), whose
	// reference names the content already. A change does not provision again.
	// +optional
	Checksum string `json:"checksum,omitempty"`

	// checksumType is the algorithm of checksum. Without it, or with auto, the
	// backend takes it from the checksum's length.
	// +optional
	ChecksumType ChecksumType `json:"checksumType,omitempty"`

	// format is what the image is made of. Without it the backend looks. With
	// live-iso the image is booted and never written to a disk.
	// +kubebuilder:validation:Enum=raw;qcow2;vdi;vmdk;live-iso
	// +optional
	DiskFormat *string `json:"format,omitempty"`

	// ociAuthSecretName is the Secret in the host's namespace with the login
	// for the registry of an oci URL. Its type is
	// kubernetes.io/dockerconfigjson or kubernetes.io/dockercfg. Ignored for
	// other URLs.
	// +optional
	OCIAuthSecretName *string `json:"ociAuthSecretName,omitempty"`
}

// IsLiveISO says whether the image is booted and not written to a disk.
func (i *Image) IsLiveISO() bool {
	return i != nil && i.DiskFormat != nil && *i.DiskFormat == DiskFormatLiveISO
}

// IsOCI says whether the image lies in a container registry.
func (i *Image) IsOCI() bool {
	if i == nil {
		return false
	}
	u, err := url.Parse(i.URL)
	if err != nil {
		scheme, _, found := strings.Cut(i.URL, "://")
		return found && strings.EqualFold(scheme, schemeOCI)
	}
	return u.Scheme == schemeOCI
}

// Reasons why an image's checksum can not be used.
var (
	errNoImage     = errors.New("image is not provided")
	errOCIChecksum = errors.New("spec.image.checksum must be empty for OCI images (oci:// images have embedded checksums)")
	errNoChecksum  = errors.New("checksum is required for normal images")
)

// GetChecksum returns the checksum that the image must have and its algorithm.
// Both are empty for images that need none; the algorithm alone is empty if it
// follows from the checksum. The error says what is wrong with the
// combination. This is the one place that decides it.
func (i *Image) GetChecksum() (checksum, checksumType string, err error) {
	switch {
	case i == nil:
		return "", "", errNoImage
	case i.IsOCI():
		if i.Checksum != "" {
			return "", "", errOCIChecksum
		}
		return "", "", nil
	case i.IsLiveISO():
		return "", "", nil
	case i.Checksum == "":
		return "", "", errNoChecksum
	}
	switch i.ChecksumType {
	case MD5, SHA256, SHA512:
		return i.Checksum, string(i.ChecksumType), nil
	case "", AutoChecksum:
		return i.Checksum, "", nil
	default:
		return "", "", fmt.Errorf("unknown checksumType %s, supported are auto, md5, sha256, sha512", i.ChecksumType)
	}
}
