package event

import (
	"time"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// FirmwareSeen is the fact that the firmware of a host at rest was read, or
// could not be. Where an operation ends with a reading, its own fact tells.
const FirmwareSeen = "firmware.read"

// Firmware is what a backend reads of a machine's firmware. It is a document in
// the data stream, and holds no passwords.
type Firmware struct {
	// Settings are the values of the settings as text, by name.
	Settings map[string]string `json:"settings,omitempty"`
	// Schema says for each setting which values it can take, as far as the BMC tells.
	Schema map[string]v1alpha1.SettingSchema `json:"schema,omitempty"`
	// Odd are settings that the BMC lists and whose value cannot be read, sorted.
	Odd []string `json:"odd,omitempty"`
	// Components are the parts that have firmware of their own.
	Components []v1alpha1.FirmwareComponentStatus `json:"components,omitempty"`
}

// FirmwareRead says what came of the newest reading of a host's firmware.
type FirmwareRead struct {
	// Digest is the sha256 of the Firmware in the data stream that is in effect,
	// "" if there is none: the backend reads none of this machine.
	Digest string    `json:"digest,omitempty"`
	At     time.Time `json:"at,omitzero"`
	// Problem says why it could not be read, or not all of it. What is in effect
	// is then what was read before.
	Problem string `json:"problem,omitempty"`
}

// FirmwareWish is what is to be changed of a host's firmware, and not yet known
// to be so.
type FirmwareWish struct {
	// ID names the settings of this wish. It stays while nothing is added to
	// them, so a wish that was carried out, and that the machine does not heed, is
	// not carried out again.
	ID string `json:"id,omitempty"`
	// Settings are those that differ from what is asked for, sorted by name.
	Settings []SettingChange `json:"settings,omitempty"`
	// Updates are those that were not installed yet.
	Updates []v1alpha1.FirmwareUpdate `json:"updates,omitempty"`
	// Installed are updates that the object calls installed, for a host of which
	// the bus does not know what was.
	Installed []v1alpha1.FirmwareUpdate `json:"installed,omitempty"`
	// SettingsInUse and UpdatesInUse: it may be done to a host in use too, before
	// that is switched on again.
	SettingsInUse bool `json:"settingsInUse,omitempty"`
	UpdatesInUse  bool `json:"updatesInUse,omitempty"`
}

// SettingChange is a firmware setting that is to get another value.
type SettingChange struct {
	Name string `json:"name"`
	// From is the value that the machine had when the wish was made.
	From string `json:"from"`
	To   string `json:"to"`
	// Number: BMCs want the value as a number.
	Number bool `json:"number,omitempty"`
}

// FirmwareDone is what was done to a host's firmware on its users' account.
type FirmwareDone struct {
	// Wish is the ID of the settings that were handed over last.
	Wish string `json:"wish,omitempty"`
	// Installed are the updates that were installed, the last one for each component.
	Installed []v1alpha1.FirmwareUpdate `json:"installed,omitempty"`
}
