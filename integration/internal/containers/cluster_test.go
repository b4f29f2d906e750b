package containers_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/metalbus/metalbus/integration/internal/containers"
	"github.com/metalbus/metalbus/integration/internal/lab"
	"github.com/metalbus/metalbus/integration/internal/programs"
)

var docker = containers.Session{Programs: []string{programs.NATSServer}}

func TestMain(m *testing.M) { os.Exit(docker.Run(m)) }

const (
	patience = time.Minute
	// publishPatience is for one try: a server that is cut off never answers.
	publishPatience = 2 * time.Second
	batch           = 20
)

// A stream of three replicas takes messages while its leader is gone, and
// the leader catches up when it is back.
func TestClusterOutlivesItsNodes(t *testing.T) {
	c := docker.StartCluster(t, docker.Network(t))
	s := connect(t, c)
	s.publish(t, "on a whole cluster")

	for name, fault := range map[string]struct{ hurt, heal func(*containers.Container) }{
		"killed":  {func(n *containers.Container) { n.Kill(t) }, func(n *containers.Container) { n.Revive(t) }},
		"cut off": {func(n *containers.Container) { n.CutOff(t, c.Routes) }, func(n *containers.Container) { n.Rejoin(t, c.Routes) }},
	} {
		leader := c.Nodes[s.leader(t, c)]
		fault.hurt(leader)
		s.publish(t, "with the leader "+name)
		fault.heal(leader)
		lab.Eventually(t, patience, leader.Name+", "+name+", is current again", func() error { return s.current(t.Context()) })
	}

	info, err := s.js.Stream(t.Context(), s.name)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.CachedInfo().State.Msgs; got != uint64(s.sent) {
		t.Errorf("the stream holds %d messages, want %d", got, s.sent)
	}
}

// A stream is one with three replicas, and what was sent to it.
type stream struct {
	name string
	nc   *nats.Conn
	js   jetstream.JetStream
	sent int
}

func connect(t *testing.T, c *containers.Cluster) *stream {
	t.Helper()
	// Without short pings a client of a silent server waits for minutes.
	nc, err := nats.Connect(c.URLs, nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond),
		nats.PingInterval(time.Second), nats.MaxPingsOutstanding(2), nats.Timeout(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	s := &stream{name: "HOSTS", nc: nc}
	if s.js, err = jetstream.New(nc); err != nil {
		t.Fatal(err)
	}
	lab.Eventually(t, patience, "create a stream of three replicas", func() error {
		ctx, cancel := context.WithTimeout(t.Context(), publishPatience)
		defer cancel()
		_, err := s.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: s.name, Subjects: []string{"hosts.>"}, Replicas: 3})
		return err
	})
	return s
}

func (s *stream) publish(t *testing.T, when string) {
	t.Helper()
	for range batch {
		s.sent++
		id := fmt.Sprint(s.sent)
		lab.Eventually(t, patience, "publish "+when, func() error {
			ctx, cancel := context.WithTimeout(t.Context(), publishPatience)
			defer cancel()
			_, err := s.js.Publish(ctx, "hosts."+id, nil, jetstream.WithMsgID(id), jetstream.WithRetryAttempts(0))
			if err != nil {
				_ = s.nc.ForceReconnect() // its server may be well, and cut off from the rest
			}
			return err
		})
	}
}

func (s *stream) leader(t *testing.T, c *containers.Cluster) (leader string) {
	t.Helper()
	lab.Eventually(t, patience, "know the leader", func() error {
		info, err := s.info(t.Context())
		if err != nil {
			return err
		}
		leader = info.Cluster.Leader
		if c.Nodes[leader] == nil {
			return fmt.Errorf("no leader: %q", leader)
		}
		return nil
	})
	return leader
}

// current says why some replica lags behind its leader.
func (s *stream) current(ctx context.Context) error {
	info, err := s.info(ctx)
	if err != nil {
		return err
	}
	replicas := info.Cluster.Replicas
	if len(replicas) != 2 || slices.ContainsFunc(replicas, func(p *jetstream.PeerInfo) bool { return !p.Current || p.Offline }) {
		return fmt.Errorf("replicas: %+v", replicas)
	}
	return nil
}

func (s *stream) info(ctx context.Context) (*jetstream.StreamInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, publishPatience)
	defer cancel()
	found, err := s.js.Stream(ctx, s.name)
	if err != nil {
		return nil, err
	}
	return found.CachedInfo(), nil
}
