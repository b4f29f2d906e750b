package bus_test

import (
	"fmt"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/bus/bustest"
)

// cluster is three servers that hold three copies of each stream.
func cluster(tb testing.TB) (servers []*server.Server, urls []string) {
	tb.Helper()
	routes := make([]*url.URL, 3)
	for i := range routes {
		routes[i] = &url.URL{Scheme: "nats-route", Host: freeAddress(tb)}
	}
	for i := range routes {
		host, port, _ := net.SplitHostPort(routes[i].Host)
		opts := &server.Options{
			ServerName: fmt.Sprintf("n%d", i), Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true,
			JetStream: true, StoreDir: tb.TempDir(), Routes: routes, Cluster: server.ClusterOpts{Name: "test", Host: host, Port: number(tb, port)},
		}
		s, err := server.NewServer(opts)
		if err != nil {
			tb.Fatal(err)
		}
		s.Start()
		tb.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		servers = append(servers, s)
	}
	for _, s := range servers {
		if !s.ReadyForConnections(10 * time.Second) {
			tb.Fatal("a server is not ready")
		}
		urls = append(urls, s.ClientURL())
	}
	bustest.Await(tb, "the servers to have a leader", func() bool {
		for _, s := range servers {
			if s.JetStreamIsLeader() {
				return len(s.JetStreamClusterPeers()) == len(servers)
			}
		}
		return false
	})
	return servers, urls
}

func freeAddress(tb testing.TB) string {
	tb.Helper()
	l, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func number(tb testing.TB, text string) (n int) {
	tb.Helper()
	if _, err := fmt.Sscan(text, &n); err != nil {
		tb.Fatal(err)
	}
	return n
}

func TestConformOnACluster(t *testing.T) {
	_, urls := cluster(t)
	connect := func(tb testing.TB, name string) *bus.Bus {
		tb.Helper()
		return bustest.Connect(tb, bus.Config{URLs: urls, Cluster: bustest.Cluster, Name: name, Timing: bustest.Patient()})
	}
	b := connect(t, "admin")
	bustest.Await(t, "the streams", func() bool {
		_, err := b.Init(t.Context(), bus.InitOptions{Replicas: 3, MaxBytes: 1 << 30, Memory: true})
		return err == nil
	})
	bustest.Conform(t, bustest.Patient(), connect)
}

func TestWorkGoesOnWhenAServerOfThreeDies(t *testing.T) {
	servers, urls := cluster(t)
	b := bustest.Connect(t, bus.Config{URLs: urls, Cluster: bustest.Cluster, Name: "registrar", Timing: bustest.Patient()})
	bustest.Await(t, "the streams", func() bool {
		_, err := b.Init(t.Context(), bus.InitOptions{Replicas: 3, MaxBytes: 1 << 30, Memory: true})
		return err == nil
	})
	w := bustest.Registrar(enrollIn("create", "manage"))
	bustest.Serve(t, b, w)
	for i := range 20 {
		uid := fmt.Sprintf("u%d", i)
		bustest.Append(t, b, uid, bustest.The(created(uid)))
		if i == 10 {
			leader(servers).Shutdown()
		}
	}
	for i := range 20 {
		bustest.AwaitFact(t, b, fmt.Sprintf("u%d", i), event.SectionRegistration, "enroll.succeeded")
	}
	bustest.Clean(t, b)
}

// leader is the server that leads the log, else the first.
func leader(servers []*server.Server) *server.Server {
	for _, s := range servers {
		if s.JetStreamIsStreamLeader(server.DEFAULT_GLOBAL_ACCOUNT, bus.StreamHost) {
			return s
		}
	}
	return servers[0]
}
