package ironic

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
)

// BIOSSetting is one firmware setting of a node.
type BIOSSetting struct {
	Name string
	// Value is the value as text. Null tells that there is none.
	Value string
	Null  bool
	// What values it can take, as far as the BMC says.
	AttributeType   string
	AllowableValues []string
	LowerBound      *int
	UpperBound      *int
	MinLength       *int
	MaxLength       *int
	ReadOnly        *bool
	Unique          *bool
}

// UnmarshalJSON takes what BMCs give: numbers and booleans in the place of texts,
// nulls, and bounds that are no numbers, which are left out.
func (s *BIOSSetting) UnmarshalJSON(b []byte) error {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(b, &raw); err != nil {
		return err
	}
	s.Name, _ = looseText(raw["name"])
	var ok bool
	s.Value, ok = looseText(raw["value"])
	s.Null = !ok
	s.AttributeType, _ = looseText(raw["attribute_type"])
	var values []Text
	if json.Unmarshal(raw["allowable_values"], &values) == nil {
		for _, v := range values {
			s.AllowableValues = append(s.AllowableValues, string(v))
		}
	}
	s.LowerBound, s.UpperBound = bound(raw["lower_bound"]), bound(raw["upper_bound"])
	s.MinLength, s.MaxLength = bound(raw["min_length"]), bound(raw["max_length"])
	s.ReadOnly, s.Unique = flag(raw["read_only"]), flag(raw["unique"])
	return nil
}

// bound is a bound as a number, nil if it is not told.
func bound(raw json.RawMessage) *int {
	n := looseNumber(raw)
	if !n.Known {
		return nil
	}
	v := int(n.Value)
	return &v
}

// flag is a boolean, nil if it is not told.
func flag(raw json.RawMessage) *bool {
	f := looseFlag(raw)
	if !f.Known {
		return nil
	}
	return &f.Value
}

// BIOS are a node's firmware settings, with what values they can take.
func (c *Client) BIOS(ctx context.Context, uuid string) ([]BIOSSetting, error) {
	var list struct {
		Settings []BIOSSetting `json:"bios"`
	}
	err := c.call(ctx, call{name: "get BIOS settings", about: "of node " + uuid, do: func(ctx context.Context, s *gophercloud.ServiceClient) error {
		list.Settings = nil
		return c.get(ctx, s, s.ServiceURL("nodes", uuid, "bios")+"?detail=true", &list)
	}})
	if err == nil && list.Settings == nil {
		err = c.empty("get BIOS settings")
	}
	return list.Settings, err
}

// FirmwareComponent is a part of a node that has firmware.
type FirmwareComponent struct {
	Component          string    `json:"component"`
	InitialVersion     string    `json:"initial_version"`
	CurrentVersion     string    `json:"current_version"`
	LastVersionFlashed string    `json:"last_version_flashed"`
	UpdatedAt          time.Time `json:"updated_at"`
}

// Firmware are the components of a node that can be updated: bios, bmc, and nic:
// with a name.
func (c *Client) Firmware(ctx context.Context, uuid string) ([]FirmwareComponent, error) {
	v, err := c.Version(ctx)
	if err != nil {
		return nil, err
	}
	if err := v.Needs(FeatureFirmwareInterface); err != nil {
		return nil, err
	}
	var list struct {
		Firmware []FirmwareComponent `json:"firmware"`
	}
	err = c.call(ctx, call{name: "get firmware", about: "of node " + uuid, do: func(ctx context.Context, s *gophercloud.ServiceClient) error {
		list.Firmware = nil
		return c.get(ctx, s, s.ServiceURL("nodes", uuid, "firmware"), &list)
	}})
	return slices.DeleteFunc(list.Firmware, func(f FirmwareComponent) bool {
		return f.Component != "bios" && f.Component != "bmc" && !strings.HasPrefix(f.Component, "nic:")
	}), err
}

func newestFirst(h []HistoryEntry) {
	slices.SortStableFunc(h, func(a, b HistoryEntry) int { return b.At.Compare(a.At) })
}
