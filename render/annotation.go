// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/kind"
)

// Globs are patterns of [path.Match]: a "*" stands for anything but a slash.
type Globs []string

// ParseGlobs reads patterns that are separated by commas.
func ParseGlobs(text string) (Globs, error) {
	var all Globs
	for glob := range strings.SplitSeq(text, ",") {
		if glob = strings.TrimSpace(glob); glob == "" {
			continue
		}
		if _, err := path.Match(glob, ""); err != nil {
			return nil, fmt.Errorf("%q is no glob, want one like %q", document.Shorten(glob), "lb.example.com/*")
		}
		all = append(all, glob)
	}
	return all, nil
}

// Match says whether a key matches one of them.
func (g Globs) Match(key string) bool {
	return slices.ContainsFunc(g, func(glob string) bool {
		ok, _ := path.Match(glob, key)
		return ok
	})
}

// Hook says when a Job of a bundle runs. The zero value is no hook: such a Job
// is an object like others.
type Hook string

const (
	// HookBefore runs before the other objects of its phase are sent, once for
	// each digest of the bundle.
	HookBefore Hook = "before"
	// HookAfter runs when the other objects of its phase are healthy, once for
	// each digest of the bundle.
	HookAfter Hook = "after"
	// HookBeforeDelete is kept suspended, and runs when it is to be deleted:
	// what is deleted with it waits for its end.
	HookBeforeDelete Hook = "before-delete"
	// HookGate runs when a gate of its rollout asks for it, once for each digest of the
	// bundle, see [config.JobGate]. It is not applied with the other objects.
	HookGate Hook = "gate"
	// HookOnce is a Job that removes itself ([Object.TimeToLive]) and has no annotation.
	// It is sent with the other objects of its phase, and runs once for each change of
	// itself: when it has ended and gone, nothing is missing.
	HookOnce Hook = "once"
)

var hooks = []string{string(HookBefore), string(HookAfter), string(HookBeforeDelete), string(HookGate)}

// IsRun says whether the object is a Job that runs once: for each digest of its bundle,
// or of itself, see [Object.RunOf].
func (o *Object) IsRun() bool {
	hook := o.Hook()
	return hook != "" && hook != HookBeforeDelete
}

// RunOf is the digest that a run of the Job is for.
func (o *Object) RunOf(bundle Digest) Digest {
	if o.Hook() == HookOnce {
		return o.Digest
	}
	return bundle
}

// Hook is what the object's annotation says, or [HookOnce].
func (o *Object) Hook() Hook {
	if !o.ID.IsJob() {
		return ""
	}
	hook := Hook(o.Annotation(config.AnnotationHook))
	if hook == "" && o.TimeToLive() != nil {
		return HookOnce
	}
	return hook
}

// TimeToLive is after how many seconds a Job that has finished is removed; nil when it
// stays, and for other kinds.
func (o *Object) TimeToLive() *int32 {
	if !o.ID.IsJob() || !bytes.Contains(o.JSON, []byte("ttlSecondsAfterFinished")) {
		return nil
	}
	var job struct {
		Spec struct {
			TTL *int32 `json:"ttlSecondsAfterFinished"`
		} `json:"spec"`
	}
	if json.Unmarshal(o.JSON, &job) != nil {
		return nil
	}
	return job.Spec.TTL
}

// Annotation is the value of an annotation, "" where there is none. It reads
// the JSON only where the key is in it.
func (o *Object) Annotation(key string) string {
	if !bytes.Contains(o.JSON, []byte(`"`+key+`"`)) {
		return ""
	}
	var object struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if json.Unmarshal(o.JSON, &object) != nil {
		return "" // was made by us
	}
	return object.Metadata.Annotations[key]
}

func unknownAnnotation(key string) bool {
	return strings.HasPrefix(key, config.KeyPrefix) && !slices.Contains(config.AnnotationsInGit, key)
}

// ownMarks finds annotations and labels of swell on an easy spec, where they have no
// effect: only objects are applied. A kind that reads them may hand known ones on.
func ownMarks(doc *document.Document, easy *kind.Kind) (problems document.Problems) {
	metadata := document.Lookup(doc.Node, "metadata")
	for _, field := range []string{"annotations", "labels"} {
		n := document.Lookup(metadata, field)
		for i := 0; n != nil && i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if !strings.HasPrefix(key.Value, config.KeyPrefix) || field == "annotations" && slices.Contains(config.AnnotationsInGit, key.Value) && easy.ReadsMetadata() {
				continue
			}
			more := ""
			if !slices.Contains(config.AnnotationsInGit, key.Value) {
				more = "; it is no annotation of swell either" + document.DidYouMean(key.Value, config.AnnotationsInGit)
			}
			problems = append(problems, doc.Problem(key, document.CodeObject,
				"metadata.%s[%q]: stands on an easy spec, where it has no effect: set it on the objects, by an override of metadata.annotations%s", field, document.Shorten(key.Value), more))
		}
	}
	return problems
}

// applying checks the annotations that say how the object is applied. An
// unknown word would have no effect.
func (d *draft) applying(id ObjectID, metadata map[string]any) {
	annotations, _ := metadata["annotations"].(map[string]any)
	problem := func(key, format string, args ...any) {
		d.problem(document.CodeObject, []any{"metadata", "annotations", key}, format, args...)
	}
	if annotations[config.AnnotationHookRun] != nil {
		problem(config.AnnotationHookRun, "set by swell on the hooks that it runs: remove it")
	}
	if hook, there := annotations[config.AnnotationHook].(string); there {
		switch {
		case !slices.Contains(hooks, hook):
			problem(config.AnnotationHook, "want one of %s, got %q", strings.Join(hooks, ", "), document.Shorten(hook))
		case !id.IsJob():
			problem(config.AnnotationHook, "only a Job of batch/v1 can be a hook, this is a %s", document.Shorten(id.Kind))
		}
	}
	one := func(key string, values ...string) {
		if value, there := annotations[key].(string); there && !slices.Contains(values, value) {
			problem(key, "want %s or no annotation, got %q", strings.Join(values, ", "), document.Shorten(value))
		}
	}
	one(config.AnnotationReplace, config.ReplaceAllowed)
	one(config.AnnotationPrune, config.PruneDisabled)
	one(config.AnnotationAdopt, string(config.AdoptNever), string(config.AdoptIfSame), string(config.AdoptTake))
	if owned, there := annotations[config.AnnotationOwned].(string); there {
		if _, err := ParseGlobs(owned); err != nil {
			problem(config.AnnotationOwned, "%s", err)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if !slices.Contains(config.AnnotationsSet, key) && unknownAnnotation(key) {
			problem(key, "unknown annotation of swell%s", document.DidYouMean(key, config.AnnotationsInGit))
		}
	}
	labels, _ := metadata["labels"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if strings.HasPrefix(key, config.KeyPrefix) && !slices.Contains(config.LabelsSet, key) {
			d.problem(document.CodeObject, []any{"metadata", "labels", key}, "swell looks for it among the annotations only: move it there")
		}
	}
}
