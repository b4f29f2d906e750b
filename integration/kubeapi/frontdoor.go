package main

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	apiextensionsapiserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	crdinformers "k8s.io/apiextensions-apiserver/pkg/client/informers/externalversions/apiextensions/v1"
	apiextensionsoptions "k8s.io/apiextensions-apiserver/pkg/cmd/server/options"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericapifilters "k8s.io/apiserver/pkg/endpoints/filters"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/notfoundhandler"
	"k8s.io/apiserver/pkg/util/webhook"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	apiregistrationv1beta1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1beta1"
	aggregatorapiserver "k8s.io/kube-aggregator/pkg/apiserver"
	aggregatorscheme "k8s.io/kube-aggregator/pkg/apiserver/scheme"
	apiregistrationclient "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset/typed/apiregistration/v1"
	"k8s.io/kube-aggregator/pkg/controllers/autoregister"
	"k8s.io/kubernetes/pkg/controlplane/controller/crdregistration"
)

// registrars is how many workers tell the aggregator of new groups.
const registrars = 2

// customResources is the last server of the row: it has the CRDs, serves their
// objects, and answers 404 to the rest.
func (s *apiServer) customResources() (*apiextensionsapiserver.CustomResourceDefinitions, error) {
	generic, err := s.derive(
		apiextensionsapiserver.Codecs.LegacyCodec(v1beta1.SchemeGroupVersion, apiextensionsv1.SchemeGroupVersion),
		runtime.NewMultiGroupVersioner(v1beta1.SchemeGroupVersion, schema.GroupKind{Group: v1beta1.GroupName}))
	if err != nil {
		return nil, err
	}
	generic.MergedResourceConfig = apiextensionsapiserver.DefaultAPIResourceConfigSource()
	config := apiextensionsapiserver.Config{
		GenericConfig: &genericapiserver.RecommendedConfig{Config: *generic, SharedInformerFactory: s.informers},
		ExtraConfig: apiextensionsapiserver.ExtraConfig{
			CRDRESTOptionsGetter: apiextensionsoptions.NewCRDRESTOptionsGetter(s.etcd, nil, s.config.StorageObjectCountTracker),
			MasterCount:          1,
			AuthResolverWrapper:  s.webhookAuth(),
			ServiceResolver:      webhook.NewDefaultServiceResolver(),
		},
	}
	nothing := notfoundhandler.New(s.config.Serializer, genericapifilters.NoMuxAndDiscoveryIncompleteKey)
	return config.Complete().New(genericapiserver.NewEmptyDelegateWithCustomHandler(nothing))
}

// derive copies the configuration for another server of the row, whose own
// kinds are stored by another codec.
func (s *apiServer) derive(codec runtime.Codec, encode runtime.GroupVersioner) (*genericapiserver.Config, error) {
	c := *s.config
	c.PostStartHooks = map[string]genericapiserver.PostStartHookConfigEntry{}
	c.RESTOptionsGetter = nil
	etcd := s.etcd
	etcd.StorageConfig.Codec, etcd.StorageConfig.EncodeVersioner = codec, encode
	etcd.SkipHealthEndpoints = true
	return &c, etcd.ApplyTo(&c)
}

// aggregator is the first server of the row. It makes one list of groups and
// one OpenAPI document out of the built-in kinds and the custom resources.
func (s *apiServer) aggregator(next *genericapiserver.GenericAPIServer, crds crdinformers.CustomResourceDefinitionInformer) (*aggregatorapiserver.APIAggregator, error) {
	generic, err := s.derive(
		aggregatorscheme.Codecs.LegacyCodec(apiregistrationv1.SchemeGroupVersion, apiregistrationv1beta1.SchemeGroupVersion),
		runtime.NewMultiGroupVersioner(apiregistrationv1.SchemeGroupVersion, schema.GroupKind{Group: apiregistrationv1beta1.GroupName}))
	if err != nil {
		return nil, err
	}
	generic.SkipOpenAPIInstallation = true // the aggregator has its own
	generic.MergedResourceConfig = aggregatorapiserver.DefaultAPIResourceConfigSource()
	config := aggregatorapiserver.Config{
		GenericConfig: &genericapiserver.RecommendedConfig{Config: *generic, SharedInformerFactory: s.informers},
		ExtraConfig: aggregatorapiserver.ExtraConfig{
			ServiceResolver: webhook.NewDefaultServiceResolver(),
			DisableRemoteAvailableConditionController: true,
		},
	}
	server, err := config.Complete().NewWithDelegate(next)
	if err != nil {
		return nil, err
	}
	return server, s.registerGroups(server, crds)
}

// registerGroups tells the aggregator of the built-in groups once, and of the
// custom ones as they come and go.
func (s *apiServer) registerGroups(server *aggregatorapiserver.APIAggregator, crds crdinformers.CustomResourceDefinitionInformer) error {
	client, err := apiregistrationclient.NewForConfig(s.config.LoopbackClientConfig)
	if err != nil {
		return err
	}
	groups := autoregister.NewAutoRegisterController(server.APIRegistrationInformers.Apiregistration().V1().APIServices(), client)
	for rank, version := range append(builtInGroups(), apiextensionsv1.SchemeGroupVersion) {
		groups.AddAPIServiceToSyncOnStart(apiService(version, rank))
		s.config.AggregatedDiscoveryGroupManager.SetGroupVersionPriority(metav1.GroupVersion(version), priority(rank), 1)
	}
	custom := crdregistration.NewCRDRegistrationController(crds, groups)
	return server.GenericAPIServer.AddPostStartHook("group-registration", func(ctx genericapiserver.PostStartHookContext) error {
		go custom.Run(registrars, ctx.Done())
		go func() {
			// Else the groups of CRDs that are still there would be removed first.
			custom.WaitForInitialSync()
			groups.Run(registrars, ctx.Done())
		}()
		return nil
	})
}

func apiService(v schema.GroupVersion, rank int) *apiregistrationv1.APIService {
	return &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: v.Version + "." + v.Group},
		Spec: apiregistrationv1.APIServiceSpec{
			Group: v.Group, Version: v.Version, GroupPriorityMinimum: int32(priority(rank)), VersionPriority: 1, //nolint:gosec // below 18001
		},
	}
}

// priority is above that of custom groups, which is 1000.
func priority(rank int) int { return 18000 - 10*rank }
