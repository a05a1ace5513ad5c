// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
)

// auditPolicy asks for one event per request, when it is done. Bodies that
// carry secrets stay out at every level.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  resources:
  - group: ""
    resources: [secrets, serviceaccounts/token]
  - group: authentication.k8s.io
    resources: [tokenreviews]
- level: %s
`

// writeAuditPolicy writes what the API servers are to log; nothing if level is
// empty.
func writeAuditPolicy(dir runDir, level auditLevel) error {
	if level == "" {
		return nil
	}
	if err := os.WriteFile(dir.auditPolicy(), fmt.Appendf(nil, auditPolicy, level), 0o600); err != nil {
		return fmt.Errorf("audit policy: %w", err)
	}
	return nil
}
