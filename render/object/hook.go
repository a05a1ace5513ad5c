// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

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

const (
	// HookBeforeInstall and HookAfterInstall are [HookBefore] and [HookAfter] of the
	// bundle that installs the unit on a target, and do not run for others.
	HookBeforeInstall Hook = "before-install"
	HookAfterInstall  Hook = "after-install"
	// HookBeforeUpgrade and HookAfterUpgrade are [HookBefore] and [HookAfter] of all
	// bundles but the one that installs the unit on a target.
	HookBeforeUpgrade Hook = "before-upgrade"
	HookAfterUpgrade  Hook = "after-upgrade"
	// HookInstallUpgrade and HookUpgradeInstall run for all bundles: before the other
	// objects for the first event that they name, after them for the second.
	HookInstallUpgrade Hook = "before-install,after-upgrade"
	HookUpgradeInstall Hook = "before-upgrade,after-install"
)

// Hooks are the hooks that an annotation may name, in the order of a bundle's life.
var Hooks = []string{
	string(HookBefore), string(HookBeforeInstall), string(HookBeforeUpgrade), string(HookInstallUpgrade), string(HookUpgradeInstall),
	string(HookAfter), string(HookAfterInstall), string(HookAfterUpgrade), string(HookBeforeDelete), string(HookGate),
}

// Event is what a bundle is to a unit on a target. Hooks may run for only one of both.
type Event string

const (
	// Install brings the unit to a target where nothing of it was before.
	Install Event = "install"
	// Upgrade is every other release, a rollback and an adoption too.
	Upgrade Event = "upgrade"
)

// During returns the hook as it runs for the event: [HookBefore] or [HookAfter] for one
// that names events, none when it does not name this one. It returns all others as they are.
func (h Hook) During(event Event) Hook {
	switch h {
	case HookBeforeInstall, HookAfterInstall, HookBeforeUpgrade, HookAfterUpgrade, HookInstallUpgrade, HookUpgradeInstall:
	default:
		return h
	}
	for part := range strings.SplitSeq(string(h), ",") {
		if moment, ok := strings.CutSuffix(part, "-"+string(event)); ok {
			return Hook(moment)
		}
	}
	return ""
}

// DiffersByEvent says whether the hook runs otherwise at an install than at an upgrade.
func (h Hook) DiffersByEvent() bool { return h.During(Install) != h.During(Upgrade) }

// Skips says whether the object is a hook that does not run for the event.
func (o *Object) Skips(event Event) bool {
	hook := o.Hook()
	return hook != "" && hook.During(event) == ""
}

// DiffersByEvent says whether hooks of the bundle run otherwise at an install than at an
// upgrade.
func (b *Bundle) DiffersByEvent() bool {
	return slices.ContainsFunc(b.Objects, func(o *Object) bool { return o.Hook().DiffersByEvent() })
}

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
