package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"path/filepath"
)

// A config is what the command line asks for.
type config struct {
	dir       string // state, absolute
	port      int    // 0: the port of the last start, else any
	bind      string // address to listen on
	host      string // how clients name this server
	tokens    string // file of further users, absolute; "" for none
	manifests string // folder to apply before the ready line, absolute; "" for none
	stopAtEOF bool
	verbosity int // of Kubernetes' and etcd's own logs; 0 leaves errors only
}

func parseConfig(args []string) (config, error) {
	var c config
	f := flag.NewFlagSet("kubeapi", flag.ContinueOnError)
	f.StringVar(&c.dir, "dir", "data", "`folder` for etcd's data, certificates and the kubeconfig")
	f.IntVar(&c.port, "port", 0, "`port` of the API; 0 keeps the one of the last start in the same folder, or chooses a free one")
	f.StringVar(&c.bind, "bind", "127.0.0.1", "`address` to listen on")
	f.StringVar(&c.host, "host", "", "`name` or address by which the kubeconfig calls this server (default: the address of -bind)")
	f.StringVar(&c.tokens, "tokens", "", "`file` of further users, one a line: token,name,uid,\"group,group\"")
	f.StringVar(&c.manifests, "apply", "", "`folder` of YAML files to apply at each start, before the API is called ready")
	f.BoolVar(&c.stopAtEOF, "stop-at-eof", false, "stop when standard input ends: given a pipe, the program ends with its parent")
	f.IntVar(&c.verbosity, "v", 0, "`level` of Kubernetes' and etcd's own logs; 0 leaves errors only")
	if err := f.Parse(args); err != nil {
		return config{}, err
	}
	if f.NArg() > 0 {
		return config{}, fmt.Errorf("after the flags nothing is expected: %q", f.Args())
	}
	if c.host == "" {
		c.host = c.bind
	}
	return c, errors.Join(c.validate(), c.makeAbsolute())
}

func (c config) validate() error {
	var wrong []error
	if c.port < 0 || c.port > 65535 {
		wrong = append(wrong, fmt.Errorf("-port %d: a port is 1 to 65535, or 0 for any", c.port))
	}
	if ip := net.ParseIP(c.bind); ip == nil {
		wrong = append(wrong, fmt.Errorf("-bind %q: give an IP address, such as 127.0.0.1 or 0.0.0.0", c.bind))
	} else if ip.IsUnspecified() && c.host == c.bind {
		wrong = append(wrong, fmt.Errorf("-bind %s: say with -host how clients reach this server", c.bind))
	}
	return errors.Join(wrong...)
}

// makeAbsolute frees the paths from the working folder, which changes.
func (c *config) makeAbsolute() error {
	for _, path := range []*string{&c.dir, &c.tokens, &c.manifests} {
		if *path == "" {
			continue
		}
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		*path = absolute
	}
	return nil
}
