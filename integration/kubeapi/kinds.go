package main

import (
	"fmt"
	"net"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	api "k8s.io/kubernetes/pkg/apis/core"
	admissionregistrationrest "k8s.io/kubernetes/pkg/registry/admissionregistration/rest"
	deployment "k8s.io/kubernetes/pkg/registry/apps/deployment/storage"
	statefulset "k8s.io/kubernetes/pkg/registry/apps/statefulset/storage"
	authenticationrest "k8s.io/kubernetes/pkg/registry/authentication/rest"
	authorizationrest "k8s.io/kubernetes/pkg/registry/authorization/rest"
	job "k8s.io/kubernetes/pkg/registry/batch/job/storage"
	lease "k8s.io/kubernetes/pkg/registry/coordination/lease/storage"
	configmap "k8s.io/kubernetes/pkg/registry/core/configmap/storage"
	event "k8s.io/kubernetes/pkg/registry/core/event/storage"
	namespace "k8s.io/kubernetes/pkg/registry/core/namespace/storage"
	secret "k8s.io/kubernetes/pkg/registry/core/secret/storage"
	"k8s.io/kubernetes/pkg/registry/core/service/ipallocator"
	"k8s.io/kubernetes/pkg/registry/core/service/portallocator"
	service "k8s.io/kubernetes/pkg/registry/core/service/storage"
	serviceaccount "k8s.io/kubernetes/pkg/registry/core/serviceaccount/storage"
	networkpolicy "k8s.io/kubernetes/pkg/registry/networking/networkpolicy/storage"
	disruptionbudget "k8s.io/kubernetes/pkg/registry/policy/poddisruptionbudget/storage"
	rbacrest "k8s.io/kubernetes/pkg/registry/rbac/rest"
)

const (
	// eventTTL is how long a Kubernetes Event is kept.
	eventTTL = time.Hour
	// serviceNetwork is where Services get addresses, which nobody routes.
	serviceNetwork = "10.96.0.0/16"
)

// builtInGroups is every group of built-in kinds and its version. The first of
// them that has a kind is meant when a client names the kind alone.
func builtInGroups() []schema.GroupVersion {
	return []schema.GroupVersion{
		corev1.SchemeGroupVersion, eventsv1.SchemeGroupVersion, authenticationv1.SchemeGroupVersion, authorizationv1.SchemeGroupVersion,
		rbacv1.SchemeGroupVersion, admissionregistrationv1.SchemeGroupVersion, coordinationv1.SchemeGroupVersion,
		appsv1.SchemeGroupVersion, batchv1.SchemeGroupVersion, networkingv1.SchemeGroupVersion, policyv1.SchemeGroupVersion,
	}
}

func servedVersions() *serverstorage.ResourceConfig {
	c := serverstorage.NewResourceConfig()
	c.EnableVersions(builtInGroups()...)
	return c
}

// uncached are the kinds that nobody watches in earnest: they are served from
// etcd, which saves their caches at each start.
func uncached() []string {
	return []string{
		"events#0", "events.events.k8s.io#0", "services#0", "serviceaccounts#0", "deployments.apps#0", "statefulsets.apps#0",
		"jobs.batch#0", "networkpolicies.networking.k8s.io#0", "poddisruptionbudgets.policy#0",
	}
}

// A provider makes the storage of one API group's kinds.
type provider interface {
	GroupName() string
	NewRESTStorage(serverstorage.APIResourceConfigSource, generic.RESTOptionsGetter) (genericapiserver.APIGroupInfo, error)
}

// installKinds serves the built-in kinds.
func (s *apiServer) installKinds(server *genericapiserver.GenericAPIServer) error {
	for _, p := range []provider{
		kindGroup{corev1.SchemeGroupVersion, coreKinds},
		kindGroup{eventsv1.SchemeGroupVersion, eventKinds},
		authenticationrest.RESTStorageProvider{Authenticator: s.config.Authentication.Authenticator},
		authorizationrest.RESTStorageProvider{Authorizer: s.config.Authorization.Authorizer, RuleResolver: s.config.RuleResolver},
		rbacrest.RESTStorageProvider{Authorizer: s.config.Authorization.Authorizer},
		admissionregistrationrest.RESTStorageProvider{Authorizer: s.config.Authorization.Authorizer, DiscoveryClient: s.client.Discovery()},
		kindGroup{coordinationv1.SchemeGroupVersion, leaseKinds},
		kindGroup{appsv1.SchemeGroupVersion, appKinds},
		kindGroup{batchv1.SchemeGroupVersion, jobKinds},
		kindGroup{networkingv1.SchemeGroupVersion, networkKinds},
		kindGroup{policyv1.SchemeGroupVersion, policyKinds},
	} {
		if err := s.install(server, p); err != nil {
			return fmt.Errorf("API group %q: %w", p.GroupName(), err)
		}
	}
	return nil
}

func (s *apiServer) install(server *genericapiserver.GenericAPIServer, p provider) error {
	info, err := p.NewRESTStorage(s.config.MergedResourceConfig, s.config.RESTOptionsGetter)
	if err != nil {
		return err
	}
	if hooked, ok := p.(genericapiserver.PostStartHookProvider); ok {
		name, hook, err := hooked.PostStartHook()
		if err != nil {
			return err
		}
		if err := server.AddPostStartHook(name, hook); err != nil {
			return err
		}
	}
	if p.GroupName() == api.GroupName {
		return server.InstallLegacyAPIGroup(genericapiserver.DefaultLegacyAPIPrefix, &info)
	}
	return server.InstallAPIGroup(&info)
}

// A storageMap is keyed by resource, or by resource and subresource.
type storageMap map[string]rest.Storage

// A kindGroup is a provider of those kinds of a group that we chose.
type kindGroup struct {
	version schema.GroupVersion
	kinds   func(generic.RESTOptionsGetter, storageMap) error
}

func (g kindGroup) GroupName() string { return g.version.Group }

func (g kindGroup) NewRESTStorage(_ serverstorage.APIResourceConfigSource, options generic.RESTOptionsGetter) (genericapiserver.APIGroupInfo, error) {
	info := genericapiserver.NewDefaultAPIGroupInfo(g.version.Group, legacyscheme.Scheme, legacyscheme.ParameterCodec, legacyscheme.Codecs)
	kinds := storageMap{}
	if err := g.kinds(options, kinds); err != nil {
		return info, err
	}
	info.VersionedResourcesStorageMap[g.version.Version] = kinds
	return info, nil
}

func coreKinds(options generic.RESTOptionsGetter, m storageMap) (err error) {
	if m["configmaps"], err = configmap.NewREST(options); err != nil {
		return err
	}
	if m["secrets"], err = secret.NewREST(options); err != nil {
		return err
	}
	if m["namespaces"], m["namespaces/status"], m["namespaces/finalize"], err = namespaceKinds(options); err != nil {
		return err
	}
	// Without an issuer, as without pods, there are no tokens.
	if m["serviceaccounts"], err = serviceaccount.NewREST(options, nil, nil, nil, 0, nil, nil, nil, nil, nil, false, 0); err != nil {
		return err
	}
	if err := eventKinds(options, m); err != nil {
		return err
	}
	return serviceKinds(options, m)
}

func namespaceKinds(options generic.RESTOptionsGetter) (all, status, finalize rest.Storage, err error) {
	return namespace.NewREST(options)
}

func eventKinds(options generic.RESTOptionsGetter, m storageMap) (err error) {
	m["events"], err = event.NewREST(options, uint64(eventTTL.Seconds()))
	return err
}

// serviceKinds forgets at a restart which addresses are taken: there is no
// network that could be confused by it.
func serviceKinds(options generic.RESTOptionsGetter, m storageMap) error {
	_, network, err := net.ParseCIDR(serviceNetwork)
	if err != nil {
		return err
	}
	addresses, err := ipallocator.NewInMemory(network)
	if err != nil {
		return err
	}
	ports, err := portallocator.NewInMemory(utilnet.PortRange{Base: 30000, Size: 2768})
	if err != nil {
		return err
	}
	m["services"], m["services/status"], _, err = service.NewREST(options, api.IPv4Protocol,
		map[api.IPFamily]ipallocator.Interface{api.IPv4Protocol: addresses}, ports, nil, nil, nil)
	return err
}

func leaseKinds(options generic.RESTOptionsGetter, m storageMap) (err error) {
	m["leases"], err = lease.NewREST(options)
	return err
}

func appKinds(options generic.RESTOptionsGetter, m storageMap) error {
	deployments, err := deployment.NewStorage(options)
	if err != nil {
		return err
	}
	m["deployments"], m["deployments/status"], m["deployments/scale"] = deployments.Deployment, deployments.Status, deployments.Scale
	sets, err := statefulset.NewStorage(options)
	if err != nil {
		return err
	}
	m["statefulsets"], m["statefulsets/status"], m["statefulsets/scale"] = sets.StatefulSet, sets.Status, sets.Scale
	return nil
}

func jobKinds(options generic.RESTOptionsGetter, m storageMap) error {
	jobs, err := job.NewStorage(options)
	if err != nil {
		return err
	}
	m["jobs"], m["jobs/status"] = jobs.Job, jobs.Status
	return nil
}

func networkKinds(options generic.RESTOptionsGetter, m storageMap) (err error) {
	m["networkpolicies"], err = networkpolicy.NewREST(options)
	return err
}

func policyKinds(options generic.RESTOptionsGetter, m storageMap) (err error) {
	m["poddisruptionbudgets"], m["poddisruptionbudgets/status"], err = budgetKinds(options)
	return err
}

func budgetKinds(options generic.RESTOptionsGetter) (all, status rest.Storage, err error) {
	return disruptionbudget.NewREST(options)
}
