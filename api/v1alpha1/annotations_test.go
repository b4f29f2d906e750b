package v1alpha1_test

import (
	"testing"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

func TestParseRebootArguments(t *testing.T) {
	t.Parallel()
	soft := v1alpha1.RebootAnnotationArguments{Mode: v1alpha1.RebootModeSoft}
	tests := map[string]struct {
		value string
		want  v1alpha1.RebootAnnotationArguments
		fails bool
	}{
		"empty is soft":                  {value: "", want: soft},
		"a word is soft, with an error":  {value: "yes", want: soft, fails: true},
		"half an object":                 {value: `{"mode":"hard"`, want: soft, fails: true},
		"an error half way":              {value: `{"mode":"hard","force":1}`, want: soft, fails: true},
		"no mode is soft":                {value: `{"force":true}`, want: v1alpha1.RebootAnnotationArguments{Mode: v1alpha1.RebootModeSoft, Force: true}},
		"an empty mode is soft":          {value: `{"mode":""}`, want: soft},
		"hard":                           {value: `{"mode":"hard"}`, want: v1alpha1.RebootAnnotationArguments{Mode: v1alpha1.RebootModeHard}},
		"null is as if nothing was said": {value: `null`, want: soft},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := v1alpha1.ParseRebootArguments(tt.value)
			if got != tt.want || (err != nil) != tt.fails {
				t.Errorf("ParseRebootArguments(%q) = %+v, %v; want %+v, error %t", tt.value, got, err, tt.want, tt.fails)
			}
		})
	}
}

func TestIsRebootAnnotation(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]bool{
		"reboot.metal3.io":           true,
		"reboot.metal3.io/client":    true,
		"reboot.metal3.io.example":   false,
		"inspect.metal3.io":          false,
		"my.reboot.metal3.io/client": false,
	} {
		if got := v1alpha1.IsRebootAnnotation(key); got != want {
			t.Errorf("IsRebootAnnotation(%q) = %t, want %t", key, got, want)
		}
	}
}

func TestParseDetachedArguments(t *testing.T) {
	t.Parallel()
	none := v1alpha1.DetachedAnnotationArguments{}
	for value, want := range map[string]v1alpha1.DetachedAnnotationArguments{
		"":                                      none,
		"assisted-service-controller":           none,
		`{"deleteAction":"delay"}`:              {DeleteAction: v1alpha1.DetachedDeleteActionDelay},
		`{"force":true}`:                        {Force: true},
		`{"deleteAction":"delay","force":"no"}`: none,
	} {
		if got := v1alpha1.ParseDetachedArguments(value); got != want {
			t.Errorf("ParseDetachedArguments(%q) = %+v, want %+v", value, got, want)
		}
	}
}
