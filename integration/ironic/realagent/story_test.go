//go:build realagent

package realagent_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metalbus/metalbus/integration/internal/containers"
	"github.com/metalbus/metalbus/integration/internal/programs"
	"github.com/metalbus/metalbus/integration/ironic/rig"
	"github.com/metalbus/metalbus/pkg/ironic"
	"github.com/metalbus/metalbus/pkg/ironic/ironictest"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

var docker containers.Session

func TestMain(m *testing.M) { os.Exit(docker.Run(m)) }

// patience is how long a step may take: the agent's boot and its tools need their
// time.
const patience = 10 * time.Minute

// story is one node on its way.
type story struct {
	*testing.T
	client  *ironic.Client
	machine *machine
	node    string
}

func TestARealAgentInspectsCleansAndDeploys(t *testing.T) {
	makeAgentImage(t)
	r := rig.Start(t, &docker, rig.Config{Release: ironictest.Ironic39, Hosts: 1, RealAgents: true})
	client, err := ironic.New(ironic.Config{Name: "real", Endpoint: r.URL}, time.Now, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	s := &story{T: t, client: client, machine: newMachine(t, r, "machine-1")}
	s.enroll(r)

	s.patch("/inspect_interface", "agent")
	s.verb(ironic.VerbInspect, ironic.StateManageable)
	found, err := client.Inventory(t.Context(), s.node)
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Hardware.Disks) != 1 || found.Hardware.CPU.Architecture == "" || len(found.Hardware.Interfaces) != 1 {
		t.Errorf("the hardware is %+v: want a disk, a processor and a network card", found.Hardware)
	}

	// what is on the disk goes
	scribble(t, s.machine.disk)
	s.verb(ironic.VerbProvide, ironic.StateAvailable)
	if holds(t, s.machine.disk, []byte(scribbled)) {
		t.Errorf("cleaning left what was on the disk")
	}

	image := diskImage(t)
	if err := r.Rack.Upload(t.Context(), "image.qcow2", image); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(image)
	s.patch("/instance_info/image_source", r.Files()+"/image.qcow2", "/instance_info/image_os_hash_algo", "sha256", "/instance_info/image_os_hash_value", hex.EncodeToString(sum[:]))
	s.deploy()
	if !holds(t, s.machine.disk, []byte(marker)) {
		t.Errorf("the disk does not hold the image")
	}
	if !holds(t, s.machine.disk, []byte("config-2")) {
		t.Errorf("the disk does not hold a config drive")
	}
	if v := s.machine.look().View; v.Power != "On" || len(v.Media) != 0 {
		t.Errorf("deployed, the machine is %+v", v)
	}
}

func (s *story) enroll(r *rig.Rig) {
	s.Helper()
	is := s.machine.look()
	n, err := s.client.Create(s.Context(), map[string]any{
		"name": "agent~real", "driver": "redfish", "boot_interface": "redfish-virtual-media",
		// A container has no EFI: a boot loader's entry could not be made.
		"properties": map[string]any{"capabilities": "boot_mode:bios", "cpu_arch": "x86_64"},
		"driver_info": map[string]any{
			"redfish_address": r.BMC, "redfish_system_id": is.SystemPath, "redfish_username": is.Username, "redfish_password": is.Password,
			"deploy_iso": r.Files() + "/agent.iso",
		},
	})
	if err != nil {
		s.Fatal(err)
	}
	s.node = n.UUID
	if err := s.client.AddPort(s.Context(), s.node, is.MACs[0], true); err != nil {
		s.Fatal(err)
	}
	s.verb(ironic.VerbManage, ironic.StateManageable)
}

// verb gives a verb and waits for a state, with the machine going on meanwhile.
func (s *story) verb(verb, want string) {
	s.Helper()
	s.provision(ironic.Provision{Verb: verb}, want)
}

func (s *story) deploy() {
	s.Helper()
	s.provision(ironic.Provision{Verb: ironic.VerbActive, ConfigDrive: map[string]any{"meta_data": map[string]any{"name": "real"}, "user_data": "#cloud-config\n"}}, ironic.StateActive)
}

func (s *story) provision(p ironic.Provision, want string) {
	s.Helper()
	s.eventually("take "+p.Verb, func() bool {
		err := s.client.Provision(s.Context(), s.node, p)
		if err != nil && !errors.Is(err, lifecycle.ErrBusy) {
			s.Fatal(err)
		}
		return err == nil
	})
	began := time.Now()
	s.eventually("be "+want, func() bool {
		s.machine.turn()
		n, err := s.client.Get(s.Context(), s.node)
		if err != nil {
			s.Fatal(err)
		}
		if strings.HasSuffix(n.ProvisionState, "failed") || n.ProvisionState == ironic.StateEnroll && n.Reservation == "" {
			why, _ := s.client.LastErrorSince(s.Context(), s.node, began.Add(-time.Minute))
			s.Fatalf("the node is %s: %s %s", n.ProvisionState, n.LastError, why)
		}
		return n.ProvisionState == want && n.Reservation == ""
	})
	s.Logf("%s: %s after %s", p.Verb, want, time.Since(began).Round(time.Second))
}

func (s *story) patch(pairs ...string) {
	s.Helper()
	var p ironic.Patch
	for pair := range slices.Chunk(pairs, 2) {
		p.Set(pair[0], pair[1])
	}
	if _, err := s.client.Update(s.Context(), s.node, p); err != nil {
		s.Fatal(err)
	}
}

func (s *story) eventually(what string, try func() bool) {
	s.Helper()
	end := time.After(patience)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for !try() {
		select {
		case <-end:
			s.Fatalf("the node did not %s in %s", what, patience)
		case <-tick.C:
		}
	}
}

// What is looked for on the disk.
const (
	scribbled = "what was here before the cleaning"
	marker    = "the root file system of this story"
)

// scribble writes something where a partition table would be.
func scribble(t *testing.T, disk string) {
	t.Helper()
	f, err := os.OpenFile(disk, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt([]byte(scribbled), 0)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// holds looks for something anywhere on the disk. Holes in the file are skipped.
func holds(t *testing.T, disk string, what []byte) bool {
	t.Helper()
	f, err := os.Open(disk)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block := make([]byte, 4<<20)
	keep := 0
	for at := int64(0); ; {
		if data, err := f.Seek(at, seekData); err == nil && data > at {
			at, keep = data, 0
		} else if err != nil {
			return false // nothing but holes is left
		}
		n, err := f.ReadAt(block[keep:], at)
		if bytes.Contains(block[:keep+n], what) {
			return true
		}
		if errors.Is(err, io.EOF) {
			return false
		}
		at += int64(n)
		keep = copy(block, block[max(0, keep+n-len(what)):keep+n])
	}
}

// seekData finds the next part of a sparse file that is no hole.
const seekData = 3

// diskImage makes a disk image with a partition table and a file system, by the tools
// in the agent's own image.
func diskImage(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	script := `set -e
truncate -s 64M disk.raw
sgdisk -n 1:2048:0 -t 1:8300 disk.raw >/dev/null
mkdir root
echo "` + marker + `" >root/hello
mkfs.ext4 -q -d root -E offset=1048576 disk.raw 60M
qemu-img convert -O qcow2 disk.raw image.qcow2
rm -r disk.raw root`
	out, err := exec.CommandContext(t.Context(), "docker", "run", "--rm", "--network", "none", "-v", dir+":/work", "-w", "/work", "--entrypoint", "/bin/sh", agentImage, "-c", script).CombinedOutput()
	if err != nil {
		t.Fatalf("make a disk image: %v %s", err, out)
	}
	b, err := os.ReadFile(filepath.Join(dir, "image.qcow2"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func makeAgentImage(t *testing.T) {
	t.Helper()
	root, err := programs.Root(".")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, filepath.Join(root, "integration", "ironic", "images", "build"), "agent").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
