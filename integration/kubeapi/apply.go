package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
)

// fieldManager owns what is applied.
const fieldManager = "kubeapi"

// applyTo applies a folder of YAML files to the API that runs in dir.
func applyTo(ctx context.Context, dir, manifests string) error {
	if manifests == "" {
		return errors.New("name a folder of YAML files with -apply")
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfigIn(dir))
	if err != nil {
		return err
	}
	return applyFolder(ctx, config, manifests)
}

// applyFolder applies every object of the YAML files in a folder, by file name,
// and waits until the CRDs among them are served.
func applyFolder(ctx context.Context, config *rest.Config, dir string) error {
	config.ContentType = "application/json"
	config.QPS, config.Burst = 200, 400
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return errors.New("there is no .yaml file in it")
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	a := applier{mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client)), objects: objects}
	slices.Sort(files)
	for _, file := range files {
		if err := a.applyFile(ctx, file); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(file), err)
		}
	}
	return nil
}

type applier struct {
	mapper  *restmapper.DeferredDiscoveryRESTMapper
	objects dynamic.Interface
}

func (a applier) applyFile(ctx context.Context, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if len(object.Object) == 0 {
			continue // an empty document
		}
		if err := a.apply(ctx, object); err != nil {
			return fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
}

func (a applier) apply(ctx context.Context, object *unstructured.Unstructured) error {
	kind := object.GroupVersionKind()
	mapping, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	var resource dynamic.ResourceInterface = a.objects.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		namespace := object.GetNamespace()
		if namespace == "" {
			namespace = metav1.NamespaceDefault
		}
		resource = a.objects.Resource(mapping.Resource).Namespace(namespace)
	}
	if _, err := resource.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: fieldManager, Force: true}); err != nil {
		return err
	}
	if kind.Group != apiextensionsv1.GroupName {
		return nil
	}
	return a.awaitEstablished(ctx, resource, object.GetName())
}

func (a applier) awaitEstablished(ctx context.Context, crds dynamic.ResourceInterface, name string) error {
	defer a.mapper.Reset() // it learns of the new kind when next asked
	return wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		object, err := crds.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &crd); err != nil {
			return false, err
		}
		return slices.ContainsFunc(crd.Status.Conditions, established), nil
	})
}

func established(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
	return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
}
