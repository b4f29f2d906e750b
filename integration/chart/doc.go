// Package chart holds the tests of the Helm chart: it passes Helm's own lint,
// and a Kubernetes API takes every object that it makes.
package chart
