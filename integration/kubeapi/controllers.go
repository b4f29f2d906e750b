package main

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/namespace"
)

const (
	// relearn is how soon the garbage collector hears of new kinds.
	relearn = 5 * time.Second
	workers = 4
	// resync is how often informers go through all they hold: nothing is lost
	// in between, so hardly ever.
	resync = 10 * time.Hour
)

// runControllers runs the controller manager's namespace and garbage collector
// controllers on their own, until ctx ends.
func runControllers(ctx context.Context, config *rest.Config) error {
	config.QPS, config.Burst = 200, 400
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	typed := informers.NewSharedInformerFactory(client, resync)
	started := make(chan struct{})

	collector, err := garbagecollector.NewGarbageCollector(ctx, client, objects, mapper, garbagecollector.DefaultIgnoredResources(),
		informerfactory.NewInformerFactory(typed, metadatainformer.NewSharedInformerFactory(objects, resync)), started)
	if err != nil {
		return err
	}
	namespaces := namespace.NewNamespaceController(ctx, client, objects, client.Discovery().ServerPreferredNamespacedResources,
		typed.Core().V1().Namespaces(), 5*time.Minute, v1.FinalizerKubernetes)
	typed.Start(ctx.Done())
	close(started)

	go namespaces.Run(ctx, workers)
	go collector.Sync(ctx, client.Discovery(), relearn)
	collector.Run(ctx, workers, 30*time.Second)
	return ctx.Err()
}
