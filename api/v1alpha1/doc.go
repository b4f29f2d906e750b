// Package v1alpha1 holds the kinds of the API group metal3.io, version
// v1alpha1: BareMetalHost and the kinds that stand beside it.
//
// The types carry what Kubernetes must know of them (validation, columns,
// subresources) as markers, from which the CustomResourceDefinitions in
// deploy/crds and the reference in docs/api.md are generated. Names of types,
// fields and constants are those that users of the group already know, so that
// programs and YAML written for it keep working.
//
// The package holds data, the constants that give it meaning, and questions
// that can be answered from one object alone. Rules on what is allowed live in
// pkg/admission; what follows from what lives in pkg/lifecycle.
//
// # Moving between clusters
//
// clusterctl looks only at kinds whose CustomResourceDefinition has the label
// clusterctl.cluster.x-k8s.io. With …/move it takes every object of the kind,
// with …/move-hierarchy also what such an object owns. BareMetalHost has all
// three. Kinds that carry something which a user wrote, or which cannot be
// found out again without touching the machine (HardwareData), have the first
// two. PreprovisioningImage and FirmwareSchema have none: the target makes
// them anew, and garbage collection takes those that stay behind.
//
// +kubebuilder:object:generate=true
// +groupName=metal3.io
package v1alpha1
