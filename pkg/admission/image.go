package admission

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// validateImage wants an image that can be fetched and checked.
func validateImage(image *v1alpha1.Image, path *field.Path) field.ErrorList {
	if image == nil {
		return nil
	}
	var errs field.ErrorList
	if err := checkImageURL(image.URL); err != nil {
		errs = append(errs, field.Invalid(path.Child("url"), field.OmitValueType{},
			fmt.Sprintf("image URL %s is invalid: %v", withoutPassword(image.URL), err)))
	}
	if _, _, err := image.GetChecksum(); err != nil {
		errs = append(errs, field.Invalid(path.Child("checksum"), withoutPassword(image.Checksum), err.Error()))
	}
	return errs
}

// checkImageURL wants the URL of something that a backend can fetch.
func checkImageURL(raw string) error {
	u, err := parseRequestURI(raw)
	if err != nil {
		return err
	}
	if !slices.Contains([]string{"http", "https", "ftp", "gopher", "oci"}, u.Scheme) {
		return fmt.Errorf("invalid scheme in URL, %q not allowed; use http, https, ftp, gopher or oci", u.Scheme)
	}
	return nil
}

// parseRequestURI is url.ParseRequestURI with an error that does not quote a
// password.
func parseRequestURI(raw string) (*url.URL, error) {
	u, err := url.ParseRequestURI(raw)
	if err != nil && strings.Contains(raw, "@") {
		return nil, errors.New("it is not a URL")
	}
	return u, err
}

// withoutPassword is a URL, or checksum, that can be shown. One that does not parse is shown
// only if there can be no password in it.
func withoutPassword(raw string) string {
	u, err := url.Parse(raw)
	switch {
	case err == nil && u.User != nil:
		return v1alpha1.WithoutLogin(raw)
	case err != nil && strings.Contains(raw, "@"):
		return "(not shown, it may hold a password)"
	default:
		return raw
	}
}
