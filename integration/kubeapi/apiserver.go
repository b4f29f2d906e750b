package main

import (
	"context"
	"fmt"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsapiserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	basecompatibility "k8s.io/component-base/compatibility"
	aggregatorapiserver "k8s.io/kube-aggregator/pkg/apiserver"
	aggregatorscheme "k8s.io/kube-aggregator/pkg/apiserver/scheme"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	generatedopenapi "k8s.io/kubernetes/pkg/generated/openapi"
	"k8s.io/kubernetes/pkg/kubeapiserver"
)

const (
	// inFlight is how many requests may run at once. The clients are our own,
	// and being told to come again costs more than being served.
	inFlight = 4000
	// hangUp is how long a stopping server waits for its clients to close.
	hangUp = 300 * time.Millisecond
	poll   = 20 * time.Millisecond
)

// An apiServer is three servers in a row, as in Kubernetes: requests come in at
// the aggregator, which knows all groups; it passes them to the built-in
// kinds, and these pass on to the custom resources.
type apiServer struct {
	config    *genericapiserver.Config
	etcd      genericoptions.EtcdOptions
	informers informers.SharedInformerFactory
	client    kubernetes.Interface
	front     *aggregatorapiserver.APIAggregator
}

func newAPIServer(cfg config, dir *folder, etcdEndpoint string) (*apiServer, error) {
	s := &apiServer{etcd: etcdOptions(etcdEndpoint)}
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"serve TLS", func() error { return s.listen(cfg, dir) }},
		{"describe the API", s.describe},
		{"connect to etcd", s.store},
		{"let users in", func() error { return s.guard(dir.token, cfg.tokens) }},
		{"set up admission", s.admit},
		{"assemble the API", s.assemble},
	} {
		if err := step.do(); err != nil {
			return nil, fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return s, nil
}

func etcdOptions(endpoint string) genericoptions.EtcdOptions {
	backend := storagebackend.NewDefaultConfig("/registry", nil)
	backend.Transport.ServerList = []string{endpoint}
	o := genericoptions.NewEtcdOptions(backend)
	o.DefaultStorageMediaType = runtime.ContentTypeProtobuf
	o.DeleteCollectionWorkers = 4
	o.WatchCacheSizes = uncached()
	return *o
}

// loopback is a configuration with all rights for clients in this process.
func (s *apiServer) loopback() *rest.Config { return rest.CopyConfig(s.config.LoopbackClientConfig) }

// listen takes the folder's port and makes a certificate for it.
func (s *apiServer) listen(cfg config, dir *folder) error {
	s.config = genericapiserver.NewConfig(legacyscheme.Codecs)
	s.config.EffectiveVersion = compatibility.DefaultComponentGlobalsRegistry.EffectiveVersionFor(basecompatibility.DefaultKubeComponent)
	s.config.MaxRequestsInFlight, s.config.MaxMutatingRequestsInFlight = inFlight, inFlight
	s.config.EnableProfiling = false
	s.config.ExternalAddress = net.JoinHostPort(cfg.host, fmt.Sprint(dir.port()))

	cert, key, err := dir.ca.serve(cfg.host, cfg.bind)
	if err != nil {
		return err
	}
	serving := genericoptions.NewSecureServingOptions()
	serving.Listener, serving.BindAddress, serving.BindPort = dir.listener, net.ParseIP(cfg.bind), dir.port()
	if serving.ServerCert.GeneratedCert, err = dynamiccertificates.NewStaticCertKeyContent("serving", cert, key); err != nil {
		return err
	}
	if err := serving.WithLoopback().ApplyToConfig(s.config); err != nil {
		return err
	}
	s.config.LoopbackClientConfig.ContentType = runtime.ContentTypeProtobuf
	s.config.LoopbackClientConfig.DisableCompression = true
	if s.client, err = kubernetes.NewForConfig(s.config.LoopbackClientConfig); err != nil {
		return err
	}
	s.informers = informers.NewSharedInformerFactory(s.client, resync)
	return nil
}

// describe sets up discovery and OpenAPI.
func (s *apiServer) describe() error {
	namer := openapinamer.NewDefinitionNamer(legacyscheme.Scheme, apiextensionsapiserver.Scheme, aggregatorscheme.Scheme)
	s.config.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(generatedopenapi.GetOpenAPIDefinitions, namer)
	s.config.OpenAPIConfig.Info.Title = "Kubernetes"
	s.config.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(generatedopenapi.GetOpenAPIDefinitions, namer)
	s.config.OpenAPIV3Config.Info.Title = "Kubernetes"
	s.config.AggregatedDiscoveryGroupManager = aggregated.NewResourceManager("apis")
	s.config.MergedResourceConfig = servedVersions()
	return nil
}

// store says where and in which version the built-in kinds are kept.
func (s *apiServer) store() error {
	c := kubeapiserver.NewStorageFactoryConfigEffectiveVersion(s.config.EffectiveVersion)
	c.APIResourceConfig = s.config.MergedResourceConfig
	factory, err := c.Complete(&s.etcd).New()
	if err != nil {
		return err
	}
	factory.StorageConfig.StorageObjectCountTracker = s.config.StorageObjectCountTracker
	return s.etcd.ApplyWithStorageFactoryTo(factory, s.config)
}

// assemble makes the three servers, from the last to the first.
func (s *apiServer) assemble() error {
	custom, err := s.customResources()
	if err != nil {
		return err
	}
	builtIn, err := s.config.Complete(s.informers).New("kubeapi", custom.GenericAPIServer)
	if err != nil {
		return err
	}
	if err := s.installKinds(builtIn); err != nil {
		return err
	}
	s.front, err = s.aggregator(builtIn, custom.Informers.Apiextensions().V1().CustomResourceDefinitions())
	return err
}

// run serves until ctx ends and the requests in flight have been answered.
func (s *apiServer) run(ctx context.Context) error {
	s.front.GenericAPIServer.ShutdownTimeout = hangUp
	prepared, err := s.front.PrepareRun()
	if err != nil {
		return err
	}
	return prepared.Run(ctx)
}

// awaitReady returns when the server's own checks all pass.
func (s *apiServer) awaitReady(ctx context.Context) error {
	return wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		return checkReady(ctx, s.loopback()) == nil, nil
	})
}

// makeNamespaces makes those that everybody takes for granted.
func (s *apiServer) makeNamespaces(ctx context.Context) error {
	for _, name := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := s.client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("make namespace %s: %w", name, err)
		}
	}
	return nil
}
