// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package plain is the baseline of benchmarks: swell's work, done with client-go and
// nothing else.
package plain

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
)

// Client is a client for any path, without a limit on its rate.
func Client(cfg *rest.Config) (*rest.RESTClient, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1
	cfg.GroupVersion = nil
	cfg.NegotiatedSerializer = serializer.WithoutConversionCodecFactory{CodecFactory: scheme.Codecs}
	return rest.UnversionedRESTClientFor(cfg)
}

// acceptMeta asks for as little in the answer as swell does.
const acceptMeta = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1," +
	"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

// Apply sends each body once, with the options that swell sends.
func Apply(ctx context.Context, cfg *rest.Config, objects []*object.Object, workers int) error {
	client, err := Client(cfg)
	if err != nil {
		return err
	}
	var next atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range workers {
		group.Go(func() error {
			for i := int(next.Add(1)) - 1; i < len(objects); i = int(next.Add(1)) - 1 {
				err := patch(client, objects[i]).Do(ctx).Error()
				if err != nil {
					return fmt.Errorf("%s: %w", objects[i].ID, err)
				}
			}
			return nil
		})
	}
	return group.Wait()
}

func patch(client *rest.RESTClient, o *object.Object) *rest.Request {
	return client.Patch(types.ApplyPatchType).AbsPath(Path(Resource(o), o.ID.Namespace, o.ID.Name)).SetHeader("Accept", acceptMeta).
		Param("fieldManager", "swell").Param("fieldValidation", "Strict").Body(o.JSON)
}

// Correct lists all objects of the kind, and takes back what others changed on
// the one.
func Correct(ctx context.Context, cfg *rest.Config, o *object.Object) error {
	if _, err := List(ctx, cfg, Resource(o)); err != nil {
		return err
	}
	client, err := Client(cfg)
	if err != nil {
		return err
	}
	return patch(client, o).Param("force", "true").Do(ctx).Error()
}

// Keep watches the kind and takes back what others change on the one object, the
// first time, until which it does not return. watching is called when the watch
// is there.
func Keep(ctx context.Context, cfg *rest.Config, o *object.Object, watching func()) error {
	client, err := Client(cfg)
	if err != nil {
		return err
	}
	all, err := metadata.NewForConfig(cfg)
	if err != nil {
		return err
	}
	now, err := all.Resource(Resource(o)).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	watch, err := all.Resource(Resource(o)).Watch(ctx, metav1.ListOptions{LabelSelector: config.AppliedSelector, ResourceVersion: now.ResourceVersion})
	if err != nil {
		return err
	}
	defer watch.Stop()
	watching()
	for event := range watch.ResultChan() {
		live, ok := event.Object.(metav1.Object)
		if ok && live.GetName() == o.ID.Name && live.GetNamespace() == o.ID.Namespace && len(live.GetManagedFields()) > 1 {
			return patch(client, o).Param("force", "true").Do(ctx).Error()
		}
	}
	return errors.Join(errors.New("the watch ended"), ctx.Err())
}

// Resource is that of an object of a built-in kind.
func Resource(o *object.Object) schema.GroupVersionResource {
	plural := strings.ToLower(o.ID.Kind) + "s"
	plural = strings.Replace(strings.Replace(plural, "ys", "ies", 1), "sss", "sses", 1) // networkpolicies, ingresses
	return schema.GroupVersionResource{Group: o.ID.Group, Version: o.Version, Resource: plural}
}

// Path is where an API server has an object, or all of a namespace where the
// name is empty.
func Path(of schema.GroupVersionResource, namespace, name string) string {
	path := "/apis/" + of.Group + "/" + of.Version
	if of.Group == "" {
		path = "/api/" + of.Version
	}
	return strings.TrimSuffix(path+"/namespaces/"+namespace+"/"+of.Resource+"/"+name, "/")
}

// Empty deletes the objects, and waits until they are gone and so are those that
// controllers made of them: whoever is measured next has the server alone.
func Empty(ctx context.Context, cfg *rest.Config, objects []*object.Object) error {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1
	client, err := metadata.NewForConfig(cfg)
	if err != nil {
		return err
	}
	type collection struct {
		schema.GroupVersionResource
		namespace string
	}
	ours, made := map[collection]bool{}, map[collection]bool{}
	for _, o := range objects {
		ours[collection{Resource(o), o.ID.Namespace}] = true
		switch o.ID.Kind {
		case "Deployment":
			made[collection{schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}, o.ID.Namespace}] = true
		case "Service":
			made[collection{schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}, o.ID.Namespace}] = true
		}
	}
	var group errgroup.Group
	group.SetLimit(4)
	background := metav1.DeletePropagationBackground
	for c := range ours {
		group.Go(func() error {
			return client.Resource(c.GroupVersionResource).Namespace(c.namespace).DeleteCollection(ctx,
				metav1.DeleteOptions{PropagationPolicy: &background}, metav1.ListOptions{LabelSelector: config.AppliedSelector})
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for c := range made {
		for {
			left, err := client.Resource(c.GroupVersionResource).Namespace(c.namespace).List(ctx, metav1.ListOptions{Limit: 1})
			if err != nil {
				return err
			}
			if len(left.Items) == 0 {
				break
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
	return nil
}

// List reads the metadata of all objects of a kind that carry swell's label,
// page by page, and returns how many there are.
func List(ctx context.Context, cfg *rest.Config, of schema.GroupVersionResource) (n int, err error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1
	client, err := metadata.NewForConfig(cfg)
	if err != nil {
		return 0, err
	}
	options := metav1.ListOptions{LabelSelector: config.AppliedSelector, Limit: 500}
	for {
		page, err := client.Resource(of).List(ctx, options)
		if err != nil {
			return n, err
		}
		n += len(page.Items)
		if options.Continue = page.Continue; options.Continue == "" {
			return n, nil
		}
	}
}
