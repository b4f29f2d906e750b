package admission_test

import (
	"strings"
	"testing"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/admission"
)

const sum = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func TestValidateImageURL(t *testing.T) {
	t.Parallel()
	refuse := func(detail string) *finding { return &finding{invalid, "spec.image.url", detail} }
	tests := map[string]*finding{
		"http://192.0.2.80/os.qcow2":   nil,
		"https://[2001:db8::80]/os":    nil,
		"ftp://192.0.2.80/os":          nil,
		"gopher://192.0.2.80/os":       nil,
		"HTTP://192.0.2.80/os":         nil,
		"file:///var/lib/os.qcow2":     refuse(`image URL file:///var/lib/os.qcow2 is invalid: invalid scheme in URL, "file" not allowed`),
		"/os.qcow2":                    refuse(`image URL /os.qcow2 is invalid: invalid scheme in URL, "" not allowed`),
		"192.0.2.80":                   refuse(`image URL 192.0.2.80 is invalid: parse "192.0.2.80": invalid URI for request`),
		"":                             refuse(`image URL  is invalid: parse "": empty url`),
		"http://192.0.2.80/%zz":        refuse(`image URL http://192.0.2.80/%zz is invalid: parse "http://192.0.2.80/%zz": invalid URL escape`),
		"s3://key:hunter2@bucket/os":   refuse(`image URL s3://bucket/os is invalid: invalid scheme`),
		"http://key:hunter2@h/%zz":     refuse("image URL (not shown, it may hold a password) is invalid: it is not a URL"),
		"http://key:hun/ter2@192.0/os": refuse("image URL (not shown, it may hold a password) is invalid: it is not a URL"),
	}
	for url, want := range tests {
		t.Run(url, func(t *testing.T) {
			t.Parallel()
			errs := admission.ValidateHost(newHost(image(v1alpha1.Image{URL: url, Checksum: sum})))
			check(t, errs, want)
			if text := errs.ToAggregate(); text != nil && strings.Contains(text.Error(), "ter2") {
				t.Errorf("shows a password: %v", text)
			}
		})
	}
}

// The table of combinations is that of Image.GetChecksum; here it only has to
// arrive.
func TestValidateImageChecksum(t *testing.T) {
	t.Parallel()
	const http, oci = "http://192.0.2.80/os", "oci://reg.example/os@sha256:" + sum
	refuse := func(detail string) *finding { return &finding{invalid, "spec.image.checksum", detail} }
	iso := new(v1alpha1.DiskFormatLiveISO)
	tests := map[string]struct {
		image v1alpha1.Image
		want  *finding
	}{
		"a disk image with checksum":        {image: v1alpha1.Image{URL: http, Checksum: sum}},
		"a disk image without":              {image: v1alpha1.Image{URL: http}, want: refuse("checksum is required for normal images")},
		"a live ISO without":                {image: v1alpha1.Image{URL: http, DiskFormat: iso}},
		"a registry's image without":        {image: v1alpha1.Image{URL: oci}},
		"a registry's image with checksum":  {image: v1alpha1.Image{URL: oci, Checksum: sum}, want: refuse("spec.image.checksum must be empty for OCI images (oci:// images have embedded checksums)")},
		"a registry's live ISO with one":    {image: v1alpha1.Image{URL: oci, Checksum: sum, DiskFormat: iso}, want: refuse("spec.image.checksum must be empty for OCI images")},
		"a checksum of a type that is none": {image: v1alpha1.Image{URL: http, Checksum: sum, ChecksumType: "crc32"}, want: refuse("unknown checksumType crc32")},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, admission.ValidateHost(newHost(image(tt.image))), tt.want)
		})
	}
}
