package setup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

const (
	// writers bounds the writes under way.
	writers = 8
	// poll is the pause between two looks at a kind that is not served yet.
	poll = 50 * time.Millisecond
)

// ApplyCRDs applies the CustomResourceDefinitions in the YAML files of a
// folder, one a file, and waits until the API serves them all. kinds is how
// many there are.
func (c *Cluster) ApplyCRDs(ctx context.Context, folder fs.FS) (kinds int, err error) {
	files, err := fs.Glob(folder, "*.yaml")
	if err != nil {
		return 0, err
	}
	if len(files) == 0 {
		return 0, errors.New("apply the kinds: no YAML file is there")
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for _, file := range files {
		group.Go(func() error {
			if err := c.applyCRD(ctx, folder, file); err != nil {
				return fmt.Errorf("apply %s: %w", file, err)
			}
			return nil
		})
	}
	return len(files), group.Wait()
}

func (c *Cluster) applyCRD(ctx context.Context, folder fs.FS, file string) error {
	text, err := fs.ReadFile(folder, file)
	if err != nil {
		return err
	}
	var o unstructured.Unstructured
	if err := yaml.Unmarshal(text, &o.Object); err != nil {
		return err
	}
	err = c.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(&o), client.FieldOwner(fieldManager), client.ForceOwnership)
	if err != nil {
		return err
	}
	return c.awaitServed(ctx, o.GetName())
}

// awaitServed waits until a kind can be read: a while passes after it is
// called established.
func (c *Cluster) awaitServed(ctx context.Context, name string) error {
	for {
		served, err := c.served(ctx, name)
		if err != nil || served {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s to be served: %w", name, ctx.Err())
		case <-time.After(poll):
		}
	}
}

func (c *Cluster) served(ctx context.Context, name string) (bool, error) {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := c.client.Get(ctx, client.ObjectKey{Name: name}, &crd); err != nil {
		return false, err
	}
	if !slices.ContainsFunc(crd.Status.Conditions, established) {
		return false, nil
	}
	var list unstructured.UnstructuredList
	for _, v := range crd.Spec.Versions {
		if !v.Storage {
			continue
		}
		list.SetAPIVersion(crd.Spec.Group + "/" + v.Name)
		list.SetKind(crd.Spec.Names.ListKind)
		err := c.client.List(ctx, &list, client.Limit(1))
		if notYet(err) {
			return false, nil
		}
		return err == nil, err
	}
	return true, nil
}

func established(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
	return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
}

// notYet reports whether the API does not know the kind, or is setting it up.
func notYet(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsServiceUnavailable(err) || meta.IsNoMatchError(err)
}
