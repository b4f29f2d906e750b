package kube

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Access says how a program reaches the Kubernetes API.
type Access struct {
	// Kubeconfig is the path of a kubeconfig file; "" is the service account
	// of the pod.
	Kubeconfig string
}

// Bind adds the settings to the flags of a program, with their defaults.
func (a *Access) Bind(fs *pflag.FlagSet) {
	fs.StringVar(&a.Kubeconfig, "kubeconfig", "", "`path` of a kubeconfig file; empty inside a cluster")
}

// rest is the client configuration. Limits of the client's own are off: the
// number of requests at once is bounded where they are made.
func (a *Access) rest() (*rest.Config, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", a.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("configure access to Kubernetes: %w; give --kubeconfig, or run as a pod", err)
	}
	return cfg, nil
}

// Config are the settings of a service that watches and writes hosts.
type Config struct {
	Access
	// Namespaces are watched; none means all.
	Namespaces []string
	// LeaseNamespace holds the Lease by which replicas choose one of them; ""
	// is the first of Namespaces, or "default".
	LeaseNamespace string
	// Identity tells the replicas apart. A replica that comes back under its
	// old identity goes on at once, without waiting for its Lease to run out.
	Identity string
	// Writes is how many writes are made at once.
	Writes int
	// EventsPerSecond is how many Kubernetes Events are made at most. They
	// wait, so that what is written to hosts need not.
	EventsPerSecond int
}

// Bind adds the settings to the flags of a program, with their defaults.
func (c *Config) Bind(fs *pflag.FlagSet) {
	c.Access.Bind(fs)
	fs.StringSliceVar(&c.Namespaces, "watch-namespace", nil, "comma-separated `namespaces` whose hosts are watched; empty for all")
	fs.StringVar(&c.LeaseNamespace, "pod-namespace", "", "`namespace` of the leader election Lease; empty for the first that is watched, or default")
	fs.StringVar(&c.Identity, "pod-name", c.Identity, "`name` of this replica, different from all others; empty for the machine's name and the process")
	fs.IntVar(&c.Writes, "kube-writes", defaultWrites, "`number` of writes to Kubernetes at once")
	fs.IntVar(&c.EventsPerSecond, "kube-events-per-second", defaultEventsPerSecond, "`number` of Kubernetes Events made a second at most")
}

// What is used where a Config holds 0.
const (
	defaultWrites          = 32
	defaultEventsPerSecond = 25
)

// The times of leader election, those of Kubernetes' own controllers.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// Validate reports everything that is wrong.
func (c *Config) Validate() error {
	var errs []error
	if c.Identity == "" {
		errs = append(errs, errors.New("pod-name is empty: give this replica a name that no other has"))
	}
	if c.Writes < 0 {
		errs = append(errs, fmt.Errorf("kube-writes %d: want at least 1", c.Writes))
	}
	if c.EventsPerSecond < 0 {
		errs = append(errs, fmt.Errorf("kube-events-per-second %d: want at least 1", c.EventsPerSecond))
	}
	return errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	if c.Writes == 0 {
		c.Writes = defaultWrites
	}
	if c.EventsPerSecond == 0 {
		c.EventsPerSecond = defaultEventsPerSecond
	}
	if c.LeaseNamespace == "" {
		c.LeaseNamespace = "default"
		if len(c.Namespaces) > 0 {
			c.LeaseNamespace = c.Namespaces[0]
		}
	}
	return c
}

// Watches reports whether a namespace is one of those that are watched.
func (c Config) Watches(namespace string) bool {
	return len(c.Namespaces) == 0 || slices.Contains(c.Namespaces, namespace)
}

// scopes are the namespaces to list and watch; "" is all of them at once.
func (c Config) scopes() []string {
	if len(c.Namespaces) == 0 {
		return []string{""}
	}
	return c.Namespaces
}
