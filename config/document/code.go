// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package document

// The classes of input problems. A code is never given another meaning; SW1012
// is not in use.
const (
	CodeSyntax    Code = "SW1001" // text that is no YAML, or YAML that readers disagree on
	CodeDocument  Code = "SW1002" // a document without apiVersion, kind or name, or of an unknown kind
	CodeUnknown   Code = "SW1003" // a field that the schema does not have
	CodeType      Code = "SW1004" // a value of the wrong type or form
	CodeReference Code = "SW1005" // a name that nothing has: a rollout, a tenant, a file
	CodeFleet     Code = "SW1006" // a fleet document that contradicts itself or another
	CodeKind      Code = "SW1007" // a kind that does not load
	CodeRender    Code = "SW1008" // an expression that failed for this spec and target
	CodeObject    Code = "SW1009" // a hard object that its schema does not accept
	CodeDuplicate Code = "SW1010" // one object wanted twice
	CodeOverride  Code = "SW1011" // an override that cannot be applied
	CodeEmpty     Code = "SW1013" // a unit that renders to nothing
	CodeFile      Code = "SW1014" // a file or folder that cannot be read
	CodeInternal  Code = "SW1015" // a mistake in swell itself
	CodeRule      Code = "SW1016" // a value that breaks a rule of its kind's schema
	CodeCollect   Code = "SW1017" // a document that was left out of a collection
	CodePolicy    Code = "SW1018" // an object that an admission policy or Pod Security refuses
	CodeSecret    Code = "SW1023" // a Secret whose values anybody with the repository can read, or that is encrypted in a way that cannot be decrypted
	CodeCompat    Code = "SW1021" // a change of a kind or of a definition that breaks documents
	CodeTenancy   Code = "SW1019" // what the unit's Tenant may not bring
	CodeUnique    Code = "SW1022" // a value that two specs have, and that its kind says only one may have
	CodeTogether  Code = "SW1025" // a unit that stays as it is because of another one of its folder
	CodeChecker   Code = "SW1020" // a text that the program of a Checker refuses, or could not judge
	CodeChart     Code = "SW1026" // a Helm chart that cannot be rendered, or whose values it does not take
	CodeVersion   Code = "SW1024" // a version of a kind that is removed or deprecated, or a kind whose definition is nowhere
)

// Codes says in one line each what the problem classes mean and what to do.
var Codes = map[Code]string{
	CodeSyntax:    "the file is not YAML that every reader understands in one way; the message says what to write instead",
	CodeDocument:  "a document lacks its apiVersion, kind or name, or no kind of that name is known here",
	CodeUnknown:   "the field is not in the schema; the message names the nearest one that is",
	CodeType:      "the value has the wrong type or form; the message says what is wanted",
	CodeReference: "the name refers to something that does not exist in this commit",
	CodeFleet:     "the fleet's documents contradict each other; nothing is written until they agree",
	CodeKind:      "the kind does not load; its units keep their last good bundles until it does",
	CodeRender:    "an expression of the kind failed for this spec and target",
	CodeObject:    "the rendered object would be refused by the API server",
	CodeDuplicate: "two documents want the same object in the same cluster; remove or rename one",
	CodeOverride:  "the override does not fit the object that the kind renders",
	CodeEmpty:     "the unit renders to no object at all, which never deletes anything by itself",
	CodeFile:      "the file or folder cannot be read",
	CodeRule:      "the value has the right type but breaks a rule that the kind's .proto sets for it; the message says which",
	CodeCollect:   "the document of another unit has a problem and was left out; its own unit says which",
	CodePolicy:    "an admission policy, Pod Security, a LimitRange or a quota would refuse the object; the message names it",
	CodeSecret:    "values of Secrets stand in the repository as they are, or are encrypted where nobody decrypts them; encrypt the data of the Secret with sops",
	CodeUnique:    "the kind declares the value as unique, and two specs have it",
	CodeCompat:    "the change of a kind or of a definition breaks documents that were good; swell schema compat shows them",
	CodeVersion:   "the cluster's Kubernetes version does not serve this version of the kind, or will stop to, or the kind's definition is nowhere; the message says what to write",
	CodeTenancy:   "the Tenant of the fleet does not let its units have this; the message says what it lets them have",
	CodeTogether:  "the folder asks for all or nothing, and a unit below it has a problem: all of its units keep their last good bundles until that is mended",
	CodeChecker:   "the program that a Checker of the monorepo names refuses the text, or could not judge it; the message has its own words",
	CodeChart:     "the Helm chart cannot be rendered, or does not take its values; the message says what to set, or what the chart lacks",
	CodeInternal:  "swell itself has a mistake that this input brings out; please report it, only this unit or kind is held",
}
