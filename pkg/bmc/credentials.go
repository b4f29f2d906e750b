package bmc

import (
	"encoding/json"
	"fmt"
	"log/slog"
)

const hidden = "(hidden)"

// Credentials are a user name and a password. They show the name and hide the
// password, however they are printed, logged or marshalled.
type Credentials struct {
	user     string
	password *string // a pointer, so that not even a dump of memory by fmt shows it
}

// NewCredentials makes credentials.
func NewCredentials(user, password string) Credentials {
	return Credentials{user: user, password: &password}
}

// Username is the user name.
func (c Credentials) Username() string { return c.user }

func (c Credentials) reveal() string {
	if c.password == nil {
		return ""
	}
	return *c.password
}

// String shows the user name only.
func (c Credentials) String() string { return c.user + "/" + hidden }

// Format shows the user name only, whatever the verb.
func (c Credentials) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprint(f, c.String()) // fmt has nowhere to put an error
}

// LogValue shows the user name only.
func (c Credentials) LogValue() slog.Value { return slog.StringValue(c.String()) }

// MarshalJSON shows the user name only.
func (c Credentials) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]string{"username": c.user, "password": hidden})
}
