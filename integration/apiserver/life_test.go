package apiserver_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/integration/internal/lab"
	"github.com/metalbus/metalbus/integration/internal/programs"
)

// soon is how long a stop may take, with clients connected and others at work
// on the machine. Left alone it takes half a second.
const soon = 10 * time.Second

func TestAStartInTheSameFolderFindsEverythingAgain(t *testing.T) {
	for name, end := range map[string]func(*lab.Process){
		"after a stop":  func(p *lab.Process) { p.Stop(t) },
		"after a crash": (*lab.Process).Kill,
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			first := shared.StartKube(t, dir)
			before := read(t, first.Kubeconfig)
			made := configMap("default", "kept")
			if err := first.Client.Create(t.Context(), made); err != nil {
				t.Fatal(err)
			}
			end(first.Process())

			second := shared.StartKube(t, dir)
			if after := read(t, second.Kubeconfig); after != before {
				t.Errorf("the kubeconfig is another one:\n%s\nbefore:\n%s", after, before)
			}
			found := &corev1.ConfigMap{}
			if err := first.Client.Get(t.Context(), client.ObjectKeyFromObject(made), found); err != nil {
				t.Fatalf("the client of before: %v", err)
			}
			if found.UID != made.UID {
				t.Errorf("UID %s, want %s", found.UID, made.UID)
			}
		})
	}
}

func TestStopsSoonAlthoughClientsWatch(t *testing.T) {
	kube := shared.StartKube(t, t.TempDir())
	watching, err := client.NewWithWatch(kube.Config, client.Options{Scheme: lab.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	watch, err := watching.Watch(t.Context(), &corev1.ConfigMapList{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	begin := time.Now()
	kube.Process().Stop(t)
	if took := time.Since(begin); took > soon {
		t.Errorf("took %s, want at most %s", took, soon)
	}
	if code := kube.Process().ExitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if log := read(t, kube.Process().Log); log != "" {
		t.Errorf("it has something to say of a life without trouble:\n%s", log)
	}
}

func TestDoesNotOutliveItsParent(t *testing.T) {
	kube := shared.StartKube(t, t.TempDir())
	kube.Process().CloseInput()
	select {
	case <-kube.Process().Done():
	case <-time.After(patience):
		t.Errorf("still there %s after its standard input ended", patience)
	}
}

func TestRefusesWhatItCannotDo(t *testing.T) {
	running := shared.StartKube(t, t.TempDir())
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := fmt.Sprint(taken.Addr().(*net.TCPAddr).Port)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"a folder that another one uses": {
			[]string{"-dir", filepath.Dir(running.Kubeconfig)},
			[]string{"another kubeapi (process " + fmt.Sprint(running.Process().PID()), "-dir"},
		},
		"a port that is taken":           {[]string{"-dir", t.TempDir(), "-port", port}, []string{"-port " + port, "choose another port"}},
		"a folder that cannot be made":   {[]string{"-dir", filepath.Join(file, "state")}, []string{"-dir", "not a directory"}},
		"users that are not there":       {[]string{"-dir", t.TempDir(), "-tokens", file + ".csv"}, []string{"-tokens", file + ".csv"}},
		"manifests that are not there":   {[]string{"-dir", t.TempDir(), "-apply", t.TempDir()}, []string{"apply", "no .yaml file"}},
		"every address without a name":   {[]string{"-dir", t.TempDir(), "-bind", "0.0.0.0"}, []string{"-host"}},
		"an address that is none":        {[]string{"-dir", t.TempDir(), "-bind", "here"}, []string{"-bind", "here", "IP address"}},
		"a port beyond the last one":     {[]string{"-dir", t.TempDir(), "-port", "70000"}, []string{"-port 70000"}},
		"an argument that is not a flag": {[]string{"-dir", t.TempDir(), "start"}, []string{"start", "after the flags"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := shared.Start(t, programs.Kubeapi, nil, c.args...)
			<-p.Done()
			if p.ExitCode() != 1 {
				t.Errorf("exit code %d, want 1", p.ExitCode())
			}
			log := read(t, p.Log)
			for _, want := range c.want {
				if !strings.Contains(log, want) {
					t.Errorf("it does not say %q:\n%s", want, log)
				}
			}
		})
	}
}

func TestKeepsItsPortUnlessItIsTaken(t *testing.T) {
	dir := t.TempDir()
	first := shared.StartKube(t, dir)
	first.Process().Stop(t)
	taken, err := net.Listen("tcp", strings.TrimPrefix(first.Config.Host, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	second := shared.StartKube(t, dir)
	if second.Config.Host == first.Config.Host {
		t.Errorf("both at %s", first.Config.Host)
	}
	if err := second.Client.List(t.Context(), &corev1.NamespaceList{}); err != nil {
		t.Errorf("the new kubeconfig: %v", err)
	}
}

func TestShowsACertificateThatOnlyTheKubeconfigTrusts(t *testing.T) {
	config := rest.CopyConfig(shared.Kube(t).Config)
	config.CAData = nil
	stranger, err := client.New(config, client.Options{Scheme: lab.Scheme()})
	if err == nil {
		err = stranger.List(t.Context(), &corev1.NamespaceList{})
	}
	if err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("without the authority: %v, want an error of the certificate", err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func configMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}
