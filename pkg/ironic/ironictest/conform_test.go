package ironictest_test

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/metalbus/metalbus/pkg/ironic/ironictest"
	"github.com/metalbus/metalbus/pkg/ironic/ironictest/conform"
)

func TestConformance(t *testing.T) {
	for _, r := range ironictest.Releases() {
		t.Run(fmt.Sprint(r), func(t *testing.T) { conform.Run(t, newLab(t, ironictest.Config{Release: r})) })
		t.Run(fmt.Sprint(r, " with a password"), func(t *testing.T) {
			conform.RunProtected(t, newLab(t, ironictest.Config{Release: r, Username: "user", Password: "secret"}), "user", "secret")
		})
	}
}

const (
	files = "http://images.test/files"
	sync  = 20 * time.Millisecond
)

func newLab(t *testing.T, cfg ironictest.Config) conform.Lab {
	t.Helper()
	cfg.Now, cfg.Images = time.Now, images
	cfg.Delays = ironictest.Delays{BMC: time.Millisecond, Boot: 3 * time.Millisecond, Step: 3 * time.Millisecond, Heartbeat: 5 * time.Millisecond, PowerSync: sync}
	i, url, stop, err := ironictest.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return conform.Lab{
		URL: url, Release: cfg.Release, Files: files, Poll: time.Millisecond, Patience: 20 * time.Second,
		Machine: func(tb testing.TB) conform.Machine {
			tb.Helper()
			m, err := i.Rack().Add(ironictest.Spec{SystemID: "/redfish/v1/Systems/1"})
			if err != nil {
				tb.Fatal(err)
			}
			return machine{m}
		},
		Lose: func(testing.TB) { i.Forget() },
	}
}

// images is a server that has what the suite asks for, and no other.
func images(address, checksum string) error {
	base, name := path.Split(address)
	switch {
	case strings.HasPrefix(address, conform.DeadServer):
		return errors.New("HTTPConnectionPool: Max retries exceeded: [Errno 111] ECONNREFUSED")
	case base != files+"/" || "/"+name == conform.Missing:
		return errors.New("got HTTP code 404 instead of 200 in response to HEAD request")
	case checksum != "" && "/"+path.Base(checksum) != conform.DiskSum:
		return errors.New("image failed to verify against checksum")
	}
	return nil
}

type machine struct{ *ironictest.Machine }

func (m machine) Access() conform.Access {
	s := m.Spec()
	return conform.Access{Info: obj{"redfish_address": s.Address, "redfish_system_id": s.SystemID, "redfish_username": s.Username, "redfish_password": s.Password, "redfish_verify_ca": false}, MACs: s.MACs}
}

func (m machine) Look(testing.TB) conform.Look {
	v := m.View()
	setting := v.Settings[conform.Setting]
	return conform.Look{
		On: v.On, Runs: v.Runs, Disk: v.Disk.Image, Drive: v.Disk.ConfigDrive != nil, Writes: v.Disk.Writes, Erases: v.Disk.Erases, CD: v.CD != "", Boots: v.Boots,
		Setting: setting, Firmware: v.Firmware, Volumes: len(v.Volumes), Changes: v.Changes,
	}
}

func (m machine) Fault(_ testing.TB, f conform.Fault) {
	faults := ironictest.Faults{
		Down: f.Down, RefusePower: f.RefusePower, NoBoot: f.NoBoot, FailMedia: f.FailMedia, FailUpdate: f.FailUpdate,
		FailInspect: f.FailInspect, FailClean: f.FailClean, FailDeploy: f.FailDeploy, FailService: f.FailService,
	}
	if f.Slow {
		faults.Slow = time.Second
	}
	if f.LongSteps {
		faults.Longer = time.Hour
	}
	m.SetFaults(faults)
}

func (m machine) Change(_ testing.TB, c conform.Change) {
	if c.Password != "" {
		m.SetCredentials(m.Spec().Username, c.Password)
	}
	if c.Health != "" {
		m.SetHealth(c.Health)
	}
	if c.Power != "" {
		m.SetPower(c.Power == "on")
	}
}
