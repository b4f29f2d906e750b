// Package setup brings a Kubernetes API to where metalbus can begin: the kinds,
// a namespace, and hosts from manifests. It is for the tool for people; the
// services need none of it, nor the rights that it takes.
//
// What is there already stays as it is, but for the kinds, which are brought up
// to date.
package setup
