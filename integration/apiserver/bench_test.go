package apiserver_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/integration/internal/lab"
)

const (
	// writers is how many clients write at once.
	writers = 20
	// fleet is how many hosts they write to.
	fleet = 200
	// tick is the unit in which Linux counts a process's CPU time.
	tick = 10 * time.Millisecond
)

// BenchmarkWrites measures what a write of a host costs: the time until it is
// answered, and the CPU time of the API's process with all that follows from
// it. The hosts carry a status like that of a machine with its hardware known.
func BenchmarkWrites(b *testing.B) {
	kube := shared.Kube(b)
	namespace := kube.Namespace(b)
	for i := range fleet {
		if err := kube.Client.Create(b.Context(), host(namespace, i)); err != nil {
			b.Fatal(err)
		}
	}
	var created int
	for _, write := range []struct {
		name string
		do   func(i int) error
	}{
		{"create", func(i int) error { return kube.Client.Create(b.Context(), host(namespace, fleet+created+i)) }},
		{"annotate", func(i int) error {
			patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"annotations":{"n":"%d"}}}`, i))
			return kube.Client.Patch(b.Context(), host(namespace, i%fleet), patch)
		}},
		{"merge status", func(i int) error {
			patch := client.RawPatch("application/merge-patch+json", status(b, i))
			return kube.Client.Status().Patch(b.Context(), host(namespace, i%fleet), patch)
		}},
	} {
		b.Run(strings.ReplaceAll(write.name, " ", "-"), func(b *testing.B) {
			before := cpu(b, kube)
			inParallel(b, write.do)
			b.ReportMetric(float64((cpu(b, kube)-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
			created += b.N
		})
	}
}

func inParallel(b *testing.B, do func(i int) error) {
	b.Helper()
	var wg sync.WaitGroup
	next := make(chan int)
	for range writers {
		wg.Go(func() {
			for i := range next {
				if err := do(i); err != nil {
					b.Error(err)
				}
			}
		})
	}
	for i := range b.N {
		next <- i
	}
	close(next)
	wg.Wait()
}

// cpu is the CPU time that the API's process has used so far.
func cpu(b *testing.B, kube *lab.Kube) time.Duration {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", kube.Process().PID()))
	if err != nil {
		b.Skipf("CPU time is measured on Linux only: %v", err)
	}
	// The name, in parentheses, may hold anything; user and system time are the
	// twelfth and thirteenth field after it.
	_, after, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(after)
	var sum time.Duration
	for _, field := range fields[11:13] {
		ticks, err := strconv.Atoi(field)
		if err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(ticks) * tick
	}
	return sum
}

func host(namespace string, i int) *v1alpha1.BareMetalHost {
	return &v1alpha1.BareMetalHost{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("host-%d", i)},
		Spec: v1alpha1.BareMetalHostSpec{
			Online:         true,
			BootMACAddress: fmt.Sprintf("52:54:00:%02x:%02x:%02x", i>>16&0xff, i>>8&0xff, i&0xff),
			BMC:            v1alpha1.BMCDetails{Address: "redfish-virtualmedia+https://192.0.2.10/redfish/v1/Systems/1", CredentialsName: "bmc"},
		},
	}
}

func status(b *testing.B, i int) []byte {
	b.Helper()
	hardware := &v1alpha1.HardwareDetails{
		SystemVendor: v1alpha1.HardwareSystemVendor{Manufacturer: "Acme", ProductName: "M1", SerialNumber: "0001"},
		RAMMebibytes: 1 << 18, Hostname: "host", CPU: v1alpha1.CPU{Arch: "x86_64", Model: "Any", ClockMegahertz: 2400, Count: 64},
	}
	for n := range 8 {
		hardware.NIC = append(hardware.NIC, v1alpha1.NIC{Name: fmt.Sprintf("eth%d", n), MAC: fmt.Sprintf("52:54:00:00:00:%02x", n), SpeedGbps: 25})
		hardware.Storage = append(hardware.Storage, v1alpha1.Storage{Name: fmt.Sprintf("/dev/disk%d", n), SizeBytes: 1 << 40, Type: v1alpha1.NVME, SerialNumber: "0001"})
	}
	now := metav1.Now()
	text, err := json.Marshal(map[string]any{"status": v1alpha1.BareMetalHostStatus{
		OperationalStatus: v1alpha1.OperationalStatusOK,
		Provisioning:      v1alpha1.ProvisionStatus{State: v1alpha1.StateAvailable, ID: "node"},
		HardwareDetails:   hardware,
		LastUpdated:       &now,
		PoweredOn:         i%2 == 0,
		ErrorCount:        i,
	}})
	if err != nil {
		b.Fatal(err)
	}
	return text
}
