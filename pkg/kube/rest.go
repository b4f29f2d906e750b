package kube

import "k8s.io/client-go/rest"

// RESTConfig is a client configuration for the packages below this one, which
// read and write kinds that this one has nothing to do with.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.rest) }
