package setup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CreateMissing makes those objects of YAML manifests that are not there, and
// leaves the others as they are. Kubernetes' own kinds come first, so that no
// host has to wait for its Secret. It is told how many it has dealt with so far
// by seen, from several goroutines. made is how many are new.
func (c *Cluster) CreateMissing(ctx context.Context, manifests []byte, seen func(n int)) (made int, err error) {
	objects, err := parse(manifests)
	if err != nil {
		return 0, err
	}
	var done, fresh atomic.Int64
	for _, pass := range [][]*unstructured.Unstructured{objects.of(true), objects.of(false)} {
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(writers)
		for _, o := range pass {
			group.Go(func() error {
				isNew, err := c.create(ctx, o)
				if isNew {
					fresh.Add(1)
				}
				seen(int(done.Add(1)))
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return int(fresh.Load()), err
		}
	}
	return int(fresh.Load()), nil
}

func (c *Cluster) create(ctx context.Context, o *unstructured.Unstructured) (isNew bool, err error) {
	err = c.client.Create(ctx, o, client.FieldOwner(fieldManager))
	if apierrors.IsAlreadyExists(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("create %s %s/%s: %w", o.GetKind(), o.GetNamespace(), o.GetName(), err)
	}
	return true, nil
}

type objects []*unstructured.Unstructured

// of are the objects of Kubernetes' own core kinds, or all others.
func (all objects) of(core bool) (some objects) {
	for _, o := range all {
		if (o.GroupVersionKind().Group == corev1.GroupName) == core {
			some = append(some, o)
		}
	}
	return some
}

// parse takes the documents of a YAML stream apart.
func parse(manifests []byte) (objects, error) {
	var all objects
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096)
	for {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(o)
		switch {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("read the manifests: %w", err)
		case len(o.Object) > 0:
			all = append(all, o)
		}
	}
}
