package ironic

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
)

// Text is a JSON value as text. Null and what is no text, number or boolean is
// empty: hardware tells of itself in many ways.
type Text string

// UnmarshalJSON takes every value.
func (t *Text) UnmarshalJSON(b []byte) error {
	s, _ := looseText(b)
	*t = Text(s)
	return nil
}

// Number is a JSON value as a number: one, or a text that begins with one.
type Number struct {
	Value float64
	// Known is false if there was no number.
	Known bool
}

var leadingNumber = regexp.MustCompile(`^\s*-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?`)

// UnmarshalJSON takes every value.
func (n *Number) UnmarshalJSON(b []byte) error {
	*n = looseNumber(b)
	return nil
}

func looseNumber(raw json.RawMessage) Number {
	s, _ := looseText(raw)
	v, err := strconv.ParseFloat(strings.TrimSpace(leadingNumber.FindString(s)), 64)
	return Number{Value: v, Known: err == nil}
}

// Flag is a JSON boolean that may be unknown.
type Flag struct{ Value, Known bool }

// UnmarshalJSON takes every value.
func (f *Flag) UnmarshalJSON(b []byte) error {
	*f = looseFlag(b)
	return nil
}

func looseFlag(raw json.RawMessage) Flag {
	s, _ := looseText(raw)
	v, err := strconv.ParseBool(strings.ToLower(s))
	return Flag{Value: v, Known: err == nil}
}

// looseText is a JSON value as text: a string, a number or a boolean. ok is false
// for everything else, null among it.
func looseText(raw json.RawMessage) (text string, ok bool) {
	b := strings.TrimSpace(string(raw))
	if b == "" || b == "null" || b[0] == '{' || b[0] == '[' {
		return "", false
	}
	if b[0] != '"' {
		return b, true
	}
	err := json.Unmarshal(raw, &text)
	return text, err == nil
}
