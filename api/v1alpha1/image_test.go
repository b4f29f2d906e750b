package v1alpha1_test

import (
	"testing"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

const sha256sum = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func TestChecksumRules(t *testing.T) {
	t.Parallel()
	const http, oci = "http://192.0.2.80/os.qcow2", "oci://reg.example/os@sha256:" + sha256sum
	qcow2, iso := "qcow2", v1alpha1.DiskFormatLiveISO
	const (
		missing    = "checksum is required for normal images"
		unwanted   = "spec.image.checksum must be empty for OCI images (oci:// images have embedded checksums)"
		unknownAlg = "unknown checksumType crc32, supported are auto, md5, sha256, sha512"
	)
	tests := map[string]struct {
		image              *v1alpha1.Image
		sum, sumType, fail string
	}{
		"no image":                          {image: nil, fail: "image is not provided"},
		"http with checksum":                {image: &v1alpha1.Image{URL: http, Checksum: sha256sum}, sum: sha256sum},
		"http, checksum of named type":      {image: &v1alpha1.Image{URL: http, Checksum: sha256sum, ChecksumType: v1alpha1.SHA256}, sum: sha256sum, sumType: "sha256"},
		"http, checksum of type auto":       {image: &v1alpha1.Image{URL: http, Checksum: sha256sum, ChecksumType: v1alpha1.AutoChecksum}, sum: sha256sum},
		"http, checksum of unknown type":    {image: &v1alpha1.Image{URL: http, Checksum: sha256sum, ChecksumType: "crc32"}, fail: unknownAlg},
		"http without checksum":             {image: &v1alpha1.Image{URL: http}, fail: missing},
		"http qcow2 with checksum":          {image: &v1alpha1.Image{URL: http, Checksum: sha256sum, DiskFormat: &qcow2}, sum: sha256sum},
		"http qcow2 without checksum":       {image: &v1alpha1.Image{URL: http, DiskFormat: &qcow2}, fail: missing},
		"http live ISO without checksum":    {image: &v1alpha1.Image{URL: http, DiskFormat: &iso}},
		"http live ISO, checksum not used":  {image: &v1alpha1.Image{URL: http, Checksum: sha256sum, DiskFormat: &iso}},
		"registry without checksum":         {image: &v1alpha1.Image{URL: oci}},
		"registry with checksum":            {image: &v1alpha1.Image{URL: oci, Checksum: sha256sum}, fail: unwanted},
		"registry qcow2 without checksum":   {image: &v1alpha1.Image{URL: oci, DiskFormat: &qcow2}},
		"registry qcow2 with checksum":      {image: &v1alpha1.Image{URL: oci, Checksum: sha256sum, DiskFormat: &qcow2}, fail: unwanted},
		"registry live ISO, no checksum":    {image: &v1alpha1.Image{URL: oci, DiskFormat: &iso}},
		"registry live ISO with checksum":   {image: &v1alpha1.Image{URL: oci, Checksum: sha256sum, DiskFormat: &iso}, fail: unwanted},
		"registry, scheme in upper case":    {image: &v1alpha1.Image{URL: "OCI://reg.example/os:1", Checksum: "x"}, fail: unwanted},
		"registry, URL that does not parse": {image: &v1alpha1.Image{URL: "Oci://reg.example/%zz", Checksum: "x"}, fail: unwanted},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sum, sumType, err := tt.image.GetChecksum()
			fail := ""
			if err != nil {
				fail = err.Error()
			}
			if sum != tt.sum || sumType != tt.sumType || fail != tt.fail {
				t.Errorf("GetChecksum() = %q, %q, %q; want %q, %q, %q", sum, sumType, fail, tt.sum, tt.sumType, tt.fail)
			}
		})
	}
}
