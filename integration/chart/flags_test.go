package chart_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/metalbus/metalbus/integration/internal/programs"
	"github.com/metalbus/metalbus/pkg/service"
)

// services are the programs that the chart runs, beside metalbus.
func services() []string {
	return []string{"registrar", "inspector", "provisioner", "powermonitor", "projector"}
}

var (
	flagInHelp    = regexp.MustCompile(`(?m)^ +(?:-\w, )?--([a-z0-9][a-z0-9-]*)`)
	commandInHelp = regexp.MustCompile(`(?m)^  ([a-z][a-z-]*) +\S`)
)

// flagsOf are the flags of a program and of all its commands.
func flagsOf(t *testing.T, program string, command ...string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), shared.Program(program), append(command, "--help")...).Output()
	if err != nil {
		t.Fatalf("%s %s --help: %v", program, strings.Join(command, " "), err)
	}
	help := string(out)
	var flags []string
	for _, m := range flagInHelp.FindAllStringSubmatch(help, -1) {
		flags = append(flags, m[1])
	}
	_, commands, more := strings.Cut(help, "Available Commands:\n")
	if !more {
		return flags
	}
	commands, _, _ = strings.Cut(commands, "\n\n")
	for _, m := range commandInHelp.FindAllStringSubmatch(commands, -1) {
		if m[1] != "help" && m[1] != "completion" {
			flags = append(flags, flagsOf(t, program, append(slices.Clone(command), m[1])...)...)
		}
	}
	return flags
}

// Each variable that the chart sets is read by the program that gets it.
func TestProgramsReadWhatTheChartSets(t *testing.T) {
	objects := render(t, home, []string{
		"switches.enabled=true", "webhook.mode=certManager", "webhook.guardHostDeletion=true", "traceEndpoint=http://collector:4318",
		"bus.credentialsSecret=creds", "bus.caSecret=ca",
	})
	var seen []string
	for _, o := range objects {
		var pod corev1.PodSpec
		switch o.GetKind() {
		case "Deployment":
			d := &appsv1.Deployment{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, d); err != nil {
				t.Fatal(err)
			}
			pod = d.Spec.Template.Spec
		case "Job":
			j := &batchv1.Job{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, j); err != nil {
				t.Fatal(err)
			}
			pod = j.Spec.Template.Spec
		default:
			continue
		}
		c := pod.Containers[0]
		program := strings.TrimSuffix(filepath.Base(c.Image), filepath.Ext(c.Image))
		program, _, _ = strings.Cut(program, ":")
		seen = append(seen, program)
		var command []string
		for _, a := range c.Args {
			if !strings.HasPrefix(a, "-") {
				command = append(command, a)
			}
		}
		var known []string
		for _, flag := range flagsOf(t, program, command...) {
			known = append(known, service.EnvName(flag))
		}
		for _, e := range c.Env {
			if !slices.Contains(known, e.Name) {
				t.Errorf("%s does not read %s", program, e.Name)
			}
		}
	}
	for _, program := range append(services(), "metalbus") {
		if !slices.Contains(seen, program) {
			t.Errorf("nothing was looked at of %s", program)
		}
	}
}

// foreign are the flags in texts that are those of other programs.
func foreign() []string {
	return []string{
		"create-namespace", "field-selector", "for", "server-side", "timeout", "type", "wait", // kubectl and helm
		"config", "subject", // nats-server and nats
		"protected", "provision-state", // openstack
		// What docs/compatibility.md names of the operator that we follow.
		"controller-concurrency", "enable-leader-election", "kube-api-qps", "max-provisioning-retries",
		"metrics-addr", "namespace", "provisioner", "tls-", "zap-",
	}
}

var flagInText = regexp.MustCompile("(?:^|[\\s`(\\[\"'])--([a-z][a-z0-9-]+)")

// Each flag that a text of ours names is one of a program of ours.
func TestFlagsInTextsExist(t *testing.T) {
	known := foreign()
	for _, program := range append(services(), "metalbus") {
		known = append(known, flagsOf(t, program)...)
	}
	root, err := programs.Root(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range texts(t, root) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range flagInText.FindAllStringSubmatch(string(text), -1) {
			if !slices.Contains(known, m[1]) {
				name, _ := filepath.Rel(root, path)
				t.Errorf("%s: no program has --%s", name, m[1])
			}
		}
	}
}

// texts are the documents and manifests that people read.
func texts(t *testing.T, root string) []string {
	t.Helper()
	paths := []string{filepath.Join(root, "README.md")}
	for _, folder := range []string{"docs", "deploy", "charts"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && slices.Contains([]string{".md", ".yaml", ".txt"}, filepath.Ext(path)) {
				paths = append(paths, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return paths
}
