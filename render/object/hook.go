// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"encoding/json"

	"github.com/swell-sh/swell/config"
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
	// HookGate runs when a gate of its rollout asks for it, once for each digest of the
	// bundle, see [config.JobGate]. It is not applied with the other objects.
	HookGate Hook = "gate"
	// HookOnce is a Job that removes itself ([Object.TimeToLive]) and has no annotation.
	// It is sent with the other objects of its phase, and runs once for each change of
	// itself: when it has ended and gone, nothing is missing.
	HookOnce Hook = "once"
)

// Hooks are the hooks that an annotation may name, in the order of a bundle's life.
var Hooks = []string{string(HookBefore), string(HookAfter), string(HookBeforeDelete), string(HookGate)}

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
	var meta struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if json.Unmarshal(o.JSON, &meta) != nil {
		return "" // was made by us
	}
	return meta.Metadata.Annotations[key]
}
