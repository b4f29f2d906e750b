package main

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// stopPatience is how long etcd may take to end well. Its log is whole at any
// moment, so leaving it behind loses nothing.
const stopPatience = time.Second

// A store is the etcd of this process, reached through a socket in its folder:
// no port to find, and nobody else's business.
type store struct {
	etcd     *embed.Etcd
	endpoint string
}

// startEtcd keeps fsync off: what a process has written outlives it, and
// losing the last second with the whole machine is no harm to a laptop's API.
func startEtcd(dir string, verbosity int) (*store, error) {
	client, peer := url.URL{Scheme: "unix", Host: "etcd.sock"}, url.URL{Scheme: "unix", Host: "peer.sock"}
	for _, left := range []url.URL{client, peer} {
		if err := os.Remove(left.Host); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	cfg := embed.NewConfig()
	cfg.Dir = filepath.Join(dir, "etcd")
	cfg.LogLevel = "error"
	if verbosity > 0 {
		cfg.LogLevel = "info"
	}
	cfg.UnsafeNoFsync = true
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	cfg.InitialCluster = cfg.Name + "=" + peer.String()
	etcd, err := embed.StartEtcd(cfg)
	if err != nil {
		return nil, err
	}
	select {
	case <-etcd.Server.ReadyNotify():
		return &store{etcd: etcd, endpoint: client.String()}, nil
	case err := <-etcd.Err():
		etcd.Close()
		return nil, err
	}
}

func (s *store) stop() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.etcd.Close()
	}()
	select {
	case <-done:
	case <-time.After(stopPatience):
	}
}
