// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config"
)

// Annotations that say how a hard object is applied.
const (
	// AnnotationHook makes a Job a [Hook].
	AnnotationHook = "swell.sh/hook"
	// AnnotationHookRun is set on the live Job of a hook that runs with its
	// bundle: the digest of that bundle. Should the inventory be lost, it says
	// that the hook need not run once more.
	AnnotationHookRun = "swell.sh/hook-run"
	// AnnotationReplace with the value [ReplaceAllowed] lets an object be
	// deleted and made anew where a field that cannot be changed is to change.
	AnnotationReplace = "swell.sh/replace"
	ReplaceAllowed    = "allowed"
)

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
)

var hooks = []string{string(HookBefore), string(HookAfter), string(HookBeforeDelete)}

func isJob(id ObjectID) bool { return id.Group == "batch" && id.Kind == "Job" }

// Hook is what the object's annotation says.
func (o *Object) Hook() Hook {
	if !isJob(o.ID) {
		return ""
	}
	return Hook(o.Annotation(AnnotationHook))
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

// applying checks the annotations that say how the object is applied. A word
// that nobody knows would be taken for none.
func (d *draft) applying(id ObjectID, metadata map[string]any) {
	annotations, _ := metadata["annotations"].(map[string]any)
	problem := func(key, format string, args ...any) {
		d.problem(config.CodeObject, []any{"metadata", "annotations", key}, format, args...)
	}
	if annotations[AnnotationHookRun] != nil {
		problem(AnnotationHookRun, "set by swell on the hooks that it runs: remove it")
	}
	if hook, there := annotations[AnnotationHook].(string); there {
		switch {
		case !slices.Contains(hooks, hook):
			problem(AnnotationHook, "want one of %s, got %q", strings.Join(hooks, ", "), config.Shorten(hook))
		case !isJob(id):
			problem(AnnotationHook, "only a Job of batch/v1 can be a hook, this is a %s", config.Shorten(id.Kind))
		}
	}
	if replace, there := annotations[AnnotationReplace].(string); there && replace != ReplaceAllowed {
		problem(AnnotationReplace, "want %q or no annotation, got %q", ReplaceAllowed, config.Shorten(replace))
	}
}
