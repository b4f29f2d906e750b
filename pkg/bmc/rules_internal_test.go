package bmc

import (
	"strings"
	"testing"
	"time"

	"github.com/stmcginnis/gofish/common"
	"github.com/stmcginnis/gofish/redfish"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

func TestWWN(t *testing.T) {
	tests := map[string]struct {
		format common.DurableNameFormat
		name   string
		want   [3]string
	}{
		"NAA of 16 digits":         {"NAA", "5000C500A1B2C3D4", [3]string{"0x5000c500a1b2c3d4", "", "0x5000c500a1b2c3d4"}},
		"NAA with a prefix":        {"NAA", "0x5000c500a1b2c3d4", [3]string{"0x5000c500a1b2c3d4", "", "0x5000c500a1b2c3d4"}},
		"NAA with colons":          {"NAA", "50:00:C5:00:A1:B2:C3:D4", [3]string{"0x5000c500a1b2c3d4", "", "0x5000c500a1b2c3d4"}},
		"NAA with an extension":    {"NAA", "naa.600508B1001C4D5E6F70819203A4B5C6", [3]string{"0x600508b1001c4d5e", "0x6f70819203a4b5c6", "0x600508b1001c4d5e6f70819203a4b5c6"}},
		"EUI":                      {"EUI", "00-25-38-5B-71-B0-12-34", [3]string{"eui.0025385b71b01234", "", "eui.0025385b71b01234"}},
		"NVMe with 32 digits":      {"EUI", "eui.36344830524002230025384500000001", [3]string{"eui.36344830524002230025384500000001", "", "eui.36344830524002230025384500000001"}},
		"another kind of name":     {"NQN", "nqn.2014.08.org.nvmexpress:x", [3]string{}},
		"a name that is too short": {"NAA", "5000", [3]string{}},
		"nothing but zeros":        {"NAA", "0000000000000000", [3]string{}},
		"no number":                {"NAA", "not available!!!", [3]string{}},
		"nothing":                  {"NAA", "", [3]string{}},
	}
	for name, tc := range tests {
		var got [3]string
		got[0], got[1], got[2] = wwn(common.Identifier{DurableName: tc.name, DurableNameFormat: tc.format})
		if got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func TestDiskType(t *testing.T) {
	tests := map[string]struct {
		drive redfish.Drive
		want  v1alpha1.DiskType
	}{
		"HDD":                        {redfish.Drive{MediaType: "HDD"}, v1alpha1.HDD},
		"shingled is HDD":            {redfish.Drive{MediaType: "SMR"}, v1alpha1.HDD},
		"what turns is HDD":          {redfish.Drive{RotationSpeedRPM: 7200}, v1alpha1.HDD},
		"SSD":                        {redfish.Drive{MediaType: "SSD", Protocol: "SATA"}, v1alpha1.SSD},
		"NVMe":                       {redfish.Drive{MediaType: "SSD", Protocol: "NVMe"}, v1alpha1.NVME},
		"NVMe by its protocol alone": {redfish.Drive{Protocol: "NVMe"}, v1alpha1.NVME},
		"not said":                   {redfish.Drive{Protocol: "SAS"}, ""},
	}
	for name, tc := range tests {
		if got := diskType(&tc.drive); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func TestArchitecture(t *testing.T) {
	tests := map[string]struct {
		cpu  redfish.Processor
		want string
	}{
		"by instruction set":      {redfish.Processor{InstructionSet: "x86-64"}, "x86_64"},
		"ARM by instruction set":  {redfish.Processor{InstructionSet: "ARM-A64", ProcessorArchitecture: "ARM"}, "aarch64"},
		"by architecture":         {redfish.Processor{ProcessorArchitecture: "x86"}, "x86_64"},
		"ARM by architecture":     {redfish.Processor{ProcessorArchitecture: "ARM"}, "aarch64"},
		"an odd set, a known one": {redfish.Processor{InstructionSet: "OEM", ProcessorArchitecture: "x86"}, "x86_64"},
		"Power":                   {redfish.Processor{ProcessorArchitecture: "Power"}, "ppc64le"},
		"RISC-V":                  {redfish.Processor{InstructionSet: "RV64"}, "riscv64"},
		"not said":                {redfish.Processor{}, ""},
	}
	for name, tc := range tests {
		if got := arch(&tc.cpu); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func TestNormalMAC(t *testing.T) {
	for in, want := range map[string]string{
		"AA:BB:CC:00:11:22": "aa:bb:cc:00:11:22", "aa-bb-cc-00-11-22": "aa:bb:cc:00:11:22", "AABBCC001122": "aa:bb:cc:00:11:22", "aabb.cc00.1122": "aa:bb:cc:00:11:22", " 02:00:00:00:00:01 ": "02:00:00:00:00:01",
		"": "", "00:00:00:00:00:00": "", "ff:ff:ff:ff:ff:ff": "", "01:00:5e:00:00:01": "", "aa:bb:cc": "", "Not Available": "", "80:00:02:08:fe:80:00:00:00:00:00:00": "",
	} {
		if got := normalMAC(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestPathOf(t *testing.T) {
	for in, want := range map[string]string{
		"/redfish/v1/Systems/1": "/redfish/v1/Systems/1", "/a/Disk.Bay.0:Enc.1": "/a/Disk.Bay.0:Enc.1", "https://192.0.2.1/redfish/v1/Sessions/7": "/redfish/v1/Sessions/7", "/with%20space": "/with%20space",
		"": "", "relative": "", "//evil.example/x": "/x", "http://[bad": "",
	} {
		if got := pathOf(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestScrub(t *testing.T) {
	tests := map[string]struct{ in, want string }{
		"a secret":                {"user p4ss!", "user (hidden)"},
		"lines and controls":      {"a\r\n\tb\x00c\x1b[31m", "a b c [31m"},
		"a user in an address":    {"GET http://u:x@h/p failed", "GET http://h/p failed"},
		"very much":               {strings.Repeat("x", 1000), strings.Repeat("x", maxForeign) + "…"},
		"nothing":                 {"", ""},
		"a secret beyond the cut": {strings.Repeat("y", maxForeign-2) + "p4ss!", strings.Repeat("y", maxForeign-2) + "(h…"},
	}
	for name, tc := range tests {
		if got := scrub(tc.in, "p4ss!", ""); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func TestShortSecretsAreHiddenWhereTheyStandAlone(t *testing.T) {
	for in, want := range map[string]string{
		"ab": "(hidden)", "user ab, again": "user (hidden), again", "pwd=ab;x": "pwd=(hidden);x", "about cabs": "about cabs", "": "",
	} {
		if got := scrub(in, "ab"); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestFailedLoginsAreBounded(t *testing.T) {
	var f failedLogins
	key := func(n int) loginKey { return loginKey{byte(n), byte(n >> 8), byte(n >> 16)} }
	for n := range maxFailedLogins + 10 {
		f.add(key(n))
	}
	if len(f.keys) != maxFailedLogins || len(f.order) != maxFailedLogins || f.has(key(9)) || !f.has(key(10)) {
		t.Errorf("%d are remembered, the oldest still: %v", len(f.keys), f.has(key(9)))
	}
	f.forget(key(10))
	f.add(key(11)) // known
	if f.has(key(10)) || len(f.order) != len(f.keys) {
		t.Error("what was forgotten is known")
	}
}

func TestBreaker(t *testing.T) {
	now := time.Unix(0, 0)
	b := breaker{after: 2, first: time.Second, longest: 3 * time.Second}
	down := &Error{Reason: ErrUnreachable, Detail: "down"}
	b.fail(now, down)
	if b.open(now) != nil {
		t.Error("one failure opens it")
	}
	b.ok()
	b.fail(now, down)
	if b.open(now) != nil {
		t.Error("failures are counted across a success")
	}
	for _, pause := range []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 3 * time.Second} {
		b.fail(now, down)
		if e := b.open(now); e == nil || e.RetryAfter != pause || !e.NotTried {
			t.Fatalf("want a pause of %s, got %+v", pause, e)
		}
		now = now.Add(pause)
		if b.open(now) != nil {
			t.Fatal("it stays open after the pause")
		}
	}
	if down.Detail != "down" || down.NotTried {
		t.Error("the first error was changed")
	}
	b.fail(now, down)
	down.Op = "what this caller wanted" // while another asks
	if e := b.open(now); e.Op != "" {
		t.Errorf("another caller is told of %q", e.Op)
	}
}
