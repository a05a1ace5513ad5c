// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package object

import "testing"

// TestDuring: hooks that name events run for these alone, and all others for both.
func TestDuring(t *testing.T) {
	want := map[Hook][2]Hook{ // at an install, at an upgrade
		"": {}, HookBefore: {HookBefore, HookBefore}, HookAfter: {HookAfter, HookAfter},
		HookBeforeInstall: {HookBefore, ""}, HookAfterInstall: {HookAfter, ""},
		HookBeforeUpgrade: {"", HookBefore}, HookAfterUpgrade: {"", HookAfter},
		HookInstallUpgrade: {HookBefore, HookAfter}, HookUpgradeInstall: {HookAfter, HookBefore},
		HookBeforeDelete: {HookBeforeDelete, HookBeforeDelete}, HookGate: {HookGate, HookGate}, HookOnce: {HookOnce, HookOnce},
	}
	for hook, moments := range want {
		if install, upgrade := hook.During(Install), hook.During(Upgrade); install != moments[0] || upgrade != moments[1] {
			t.Errorf("%q: got %q and %q, want %q and %q", hook, install, upgrade, moments[0], moments[1])
		}
	}
	for _, name := range Hooks {
		if _, ok := want[Hook(name)]; !ok {
			t.Errorf("%s is not tested", name)
		}
	}
}
