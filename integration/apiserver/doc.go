// Package apiserver holds the tests of kubeapi, the Kubernetes API that laptops
// and tests use: what a cluster would do with our objects, it does too.
package apiserver
