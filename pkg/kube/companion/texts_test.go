package companion

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// round applies changes to a status, as a merge patch does.
func round(t *testing.T, changes fields, status any) {
	t.Helper()
	text, err := json.Marshal(changes)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, status); err != nil {
		t.Fatal(err)
	}
}

// A notice is put up once, leaves what others say, and tells what to do.
func TestNotices(t *testing.T) {
	t.Parallel()
	others := func() []metav1.Condition {
		return []metav1.Condition{{Type: "Valid", Status: metav1.ConditionTrue, Reason: "Success"}}
	}
	ramdisk := &v1alpha1.PreprovisioningImage{Status: v1alpha1.PreprovisioningImageStatus{Conditions: others()}}
	claim := &v1alpha1.HostClaim{Status: v1alpha1.HostClaimStatus{Conditions: others()}}
	wired := &v1alpha1.BareMetalSwitch{Status: v1alpha1.BareMetalSwitchStatus{Conditions: others()}}
	for name, tt := range map[string]struct {
		notice func() fields
		status any
		says   func() string
	}{
		"PreprovisioningImage": {func() fields { return ramdiskNotice(ramdisk, now) }, &ramdisk.Status, func() string { return conditionText(ramdisk.Status.Conditions) }},
		"HostClaim":            {func() fields { return claimNotice(claim, now) }, &claim.Status, func() string { return conditionText(claim.Status.Conditions) }},
		"BareMetalSwitch":      {func() fields { return switchNotice(wired, now) }, &wired.Status, func() string { return conditionText(wired.Status.Conditions) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changes := tt.notice()
			if changes == nil {
				t.Fatal("no notice")
			}
			round(t, changes, tt.status)
			says := tt.says()
			if !strings.HasPrefix(says, "Valid") || (!strings.Contains(says, "no service of metalbus does that yet") && !strings.Contains(says, "Start the projector with --")) {
				t.Errorf("it says %q", says)
			}
			if again := tt.notice(); again != nil {
				t.Errorf("it is put up again: %v", again)
			}
		})
	}
}

// conditionText is the types of all conditions and the message of ours.
func conditionText(conditions []metav1.Condition) string {
	var text strings.Builder
	for _, c := range conditions {
		text.WriteString(c.Type + " ")
		if c.Type == v1alpha1.SupportedCondition && c.Status == metav1.ConditionFalse && c.Reason == v1alpha1.NotSupportedReason {
			text.WriteString(c.Message)
		}
	}
	return text.String()
}
