package setup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
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
	// poll is the pause between two looks whether kinds are served.
	poll = 200 * time.Millisecond
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
	names := make([]string, len(files))
	group, applying := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i, file := range files {
		group.Go(func() (err error) {
			if names[i], err = c.applyCRD(applying, folder, file); err != nil {
				return fmt.Errorf("apply %s: %w", file, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return 0, err
	}
	return len(files), c.awaitServed(ctx, names)
}

func (c *Cluster) applyCRD(ctx context.Context, folder fs.FS, file string) (name string, err error) {
	text, err := fs.ReadFile(folder, file)
	if err != nil {
		return "", err
	}
	var o unstructured.Unstructured
	if err := yaml.Unmarshal(text, &o.Object); err != nil {
		return "", err
	}
	return o.GetName(), c.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(&o), client.FieldOwner(fieldManager), client.ForceOwnership)
}

// awaitServed waits until objects of all the kinds can be read.
func (c *Cluster) awaitServed(ctx context.Context, names []string) error {
	for {
		left, err := c.unserved(ctx, names)
		if err != nil || len(left) == 0 {
			return err
		}
		names = left
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s to be served: %w", strings.Join(left, ", "), ctx.Err())
		case <-time.After(poll):
		}
	}
}

// unserved are those of the kinds that cannot be read yet. All are looked at
// by one request, and each once more after it is called established: a while
// passes from that on.
func (c *Cluster) unserved(ctx context.Context, names []string) (left []string, err error) {
	var list apiextensionsv1.CustomResourceDefinitionList
	if err := c.client.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("read the kinds: %w", err)
	}
	for _, name := range names {
		i := slices.IndexFunc(list.Items, func(crd apiextensionsv1.CustomResourceDefinition) bool { return crd.Name == name })
		if i < 0 || !slices.ContainsFunc(list.Items[i].Status.Conditions, established) {
			left = append(left, name)
			continue
		}
		readable, err := c.readable(ctx, list.Items[i].Spec)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		if !readable {
			left = append(left, name)
		}
	}
	return left, nil
}

func established(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
	return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
}

// readable tries to read objects of a kind.
func (c *Cluster) readable(ctx context.Context, kind apiextensionsv1.CustomResourceDefinitionSpec) (bool, error) {
	var list unstructured.UnstructuredList
	for _, v := range kind.Versions {
		if v.Storage {
			list.SetAPIVersion(kind.Group + "/" + v.Name)
			list.SetKind(kind.Names.ListKind)
		}
	}
	err := c.client.List(ctx, &list, client.Limit(1))
	if apierrors.IsNotFound(err) || apierrors.IsServiceUnavailable(err) || meta.IsNoMatchError(err) {
		return false, nil
	}
	return err == nil, err
}
