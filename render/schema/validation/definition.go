// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package validation

// definitionTypes are about CustomResourceDefinitions, whose schemas package schema checks.
var definitionTypes = types{
	"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionVersion": {Optional: []string{"served", "storage"}},
}
