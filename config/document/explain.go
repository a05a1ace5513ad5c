// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package document

// Explanation is what people can read about a class of problems, see [Codes] for it
// in one line.
type Explanation struct {
	Cause string
	// Example is a file that has such a problem; the zero value where no file alone
	// makes one.
	Example Example
	WayOut  string
}

// Example is a file as it may stand beside those of the example monorepo, and a part of
// the message that it gives.
type Example struct {
	File, Text, Message string
}

const hardConfig = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: notes, namespace: shop}\n"

// betweenTenants ends the way out of units that want the same.
const betweenTenants = " Of two tenants, the one that had it goes on, and the other one has the problem."

// Explanations are those of all [Codes].
var Explanations = map[Code]Explanation{
	CodeSyntax: {
		Cause:   "The text is not YAML, or it has a form that YAML readers understand in different ways: kubectl reads an unquoted no as false, others as a text. In documents of Kubernetes and files of kustomize, numbers and words mean what they mean to kubectl and kustomize, unless swell.yaml says yaml: strict; as keys they are always refused.",
		Example: Example{"services/shop/notes/notes.yaml", hardConfig + "data: {on: enabled}\n", "a word that is a boolean to some YAML readers"},
		WayOut:  "Write what the message says: quotes around the text, or true or false. Where the place is odd, the mistake is often in the line before.",
	},
	CodeDocument: {
		Cause:   "A document has no apiVersion, kind or name, or nobody knows a kind of that name: neither Kubernetes in the version of the cluster, nor a definition of a custom resource in the monorepo, nor an easy kind.",
		Example: Example{"services/shop/notes/notes.yaml", "apiVersion: v1\nkind: ConfigMpa\nmetadata: {name: notes, namespace: shop}\n", "no such kind, did you mean"},
		WayOut:  "Correct the name, or put the CustomResourceDefinition into the folder schemas, or into a unit when swell is to apply it.",
	},
	CodeUnknown: {
		Cause:   "The schema has no such field. Most API servers would drop it without a word, and what it was meant for would not happen.",
		Example: Example{"services/shop/notes/notes.yaml", hardConfig + "daat: {a: b}\n", "daat: unknown field, did you mean \"data\"?"},
		WayOut:  "Correct the name; swell explain KIND.FIELD shows the fields that there are.",
	},
	CodeType: {
		Cause:   "The value is of another type than the schema wants, or has another form.",
		Example: Example{"services/shop/notes/notes.yaml", hardConfig + "data: {port: 80}\n", "data.port: want a string, got the number 80"},
		WayOut:  "Write a value of the type that the message names. Numbers and true in a place for texts need quotes.",
	},
	CodeReference: {
		Cause:   "A name refers to something that this commit does not have: a Rollout, a Tenant, a file, a folder, a kind.",
		Example: Example{"services/shop/swell.yaml", "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: shop}\nspec: {tenant: shop, rollout: careful, placement: {topology: cell}}\n", "rollout \"careful\": no such Rollout in the fleet"},
		WayOut:  "Correct the name, or bring what it names in the same commit.",
	},
	CodeFleet: {
		Cause:   "Documents of the fleet contradict themselves or each other. They concern every unit, so nothing at all is written from such a commit.",
		Example: Example{"fleet/more.yaml", "apiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: sas-1}\nspec: {}\n", "Cluster \"sas-1\": declared twice, first at"},
		WayOut:  "Correct the document that the message names. Until then the commit before stays in force.",
	},
	CodeKind: {
		Cause:   "An easy kind does not load: its .proto does not compile, or its template does not fit the message or the schema of what it makes. All its specs keep their last good bundles.",
		Example: Example{"kinds/space/kind.yaml", "apiVersion: swell.sh/v1\nkind: EasyKind\nmetadata: {name: space}\nspec: {message: example.platform.Spaec}\n", "example.platform.Spaec"},
		WayOut:  "Correct the kind; swell kind test runs its examples.",
	},
	CodeRender: {
		Cause:  "An expression of the kind failed for this spec on this target: a field that is not there was read, a number was divided by zero, a text was no number.",
		WayOut: "The message names the line of the expression. Guard what may be missing (has(self.spec.x), self.spec.?x), or make the field required in the .proto.",
	},
	CodeObject: {
		Cause:   "The object that came out would be refused by the API server: a field is missing, two ports are the same, a name is too long.",
		Example: Example{"services/shop/notes/notes.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: notes, namespace: shop}\nspec: {ports: [{port: 80}, {port: 80}]}\n", "spec.ports"},
		WayOut:  "Correct the value at the place that the message names: in the spec, or in the template that it names after \"from\".",
	},
	CodeDuplicate: {
		Cause:   "Two documents want the same object in the same cluster, or have the same name in one unit. Whoever was applied last would win, again and again.",
		Example: Example{"services/shop/notes/notes.yaml", hardConfig + "---\n" + hardConfig, "wanted twice in this unit"},
		WayOut:  "Give one of them another name or namespace, or remove it." + betweenTenants,
	},
	CodeOverride: {
		Cause:   "An override cannot be applied: its path leads nowhere, or it would change which object it is.",
		Example: Example{"services/shop/cart/swell.yaml", "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: cart}\nspec:\n  overrides:\n  - kind: Runtime\n    object: deployment\n    remove: [spec.nothing]\n", "matches nothing"},
		WayOut:  "The message shows how far the path led. swell render --unit UNIT shows the object as it is.",
	},
	CodeEmpty: {
		Cause:   "A unit renders to no object on any target. That could delete all that it has, so it does nothing.",
		Example: Example{"services/shop/notes/runtime.yaml", "apiVersion: easy.example.com/v1\nkind: Runtime\nmetadata: {name: notes}\nspec: {image: registry.example.com/shop/notes, replicas: {myt: 1}}\n", "the unit renders to nothing"},
		WayOut:  "Correct the placement or the conditions of the kind; or remove the folder, to remove the unit.",
	},
	CodeFile: {
		Cause:  "A file or folder cannot be read, or is none: a submodule, a symbolic link that is not followed, a name that not every system can have.",
		WayOut: "Put a plain file there. Among units, a symbolic link may lead to a file of the monorepo.",
	},
	CodeInternal: {
		Cause:  "swell itself has a mistake that this input brings out. Only this unit or kind is held.",
		WayOut: "Please report it with the message and, if you may, the document.",
	},
	CodeRule: {
		Cause:   "The value has the right type and breaks a rule that the kind's .proto sets for it.",
		Example: Example{"services/shop/notes/balancer.yaml", "apiVersion: easy.example.com/v1\nkind: L7Balancer\nmetadata: {name: notes}\nspec: {hosts: [], replicas: 51}\n", "spec.replicas"},
		WayOut:  "The message says the rule; swell explain KIND.FIELD shows all rules of a field.",
	},
	CodeCollect: {
		Cause:  "A kind collects documents of other units, and one of those has a problem. It is left out; the others are collected.",
		WayOut: "Correct the document where it stands: its own unit shows the problem.",
	},
	CodePolicy: {
		Cause:   "An admission policy, Pod Security, a LimitRange or a quota would refuse the object when it is applied: policies of the folder policies, and what the facts of the cluster say that it has.",
		Example: Example{"services/shop/notes/notes.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: notes, labels: {pod-security.kubernetes.io/enforce: restricted}}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: notes, namespace: notes}\nspec: {containers: [{name: notes, image: notes}]}\n", "restricted"},
		WayOut:  "Change the object as the message says; or the policy, where it is wrong. swell check --base judges a change by the policies that it goes to as well.",
	},
	CodeTogether: {
		Cause:  "A swell.yaml above the unit says allOrNothing: true, and another unit below it has a problem, which the message names.",
		WayOut: "Mend the other unit, or put allOrNothing: false into a swell.yaml of the units that may be released by themselves.",
	},
	CodeChecker: {
		Cause:  "The program that a Checker names refused the text, with its own words behind the name; or it could not judge it, because it is missing, took too long or wrote too much.",
		WayOut: "Change the text at the line that the message names. Where the program is missing, say where it is in checkers.yaml or in the daemon's configuration.",
	},
	CodeChart: {
		Cause:  "A chart that a HelmChart names cannot be rendered: a template fails, asks for something that is not the same each time, or takes too much; the chart does not take its values; or a part of it is not in the tree.",
		WayOut: "Where the message names values, set them in spec.values. Where the chart lacks something, bring it into the tree: swell vendor chart prints the commands. The line of the chart's own file stands behind the problem.",
	},
	CodeSecret: {
		Cause:   "Values of a Secret stand in the repository as they are, so everybody who can read it knows them, now and for ever; or values are encrypted where nobody decrypts them.",
		Example: Example{"services/shop/notes/notes.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: notes, namespace: shop}\nstringData: {token: EXAMPLE}\n", "a value that everybody with the repository can read"},
		WayOut:  "Encrypt the Secret's data with sops, and change the values, because Git keeps the old ones. Or have another tool make the Secret.",
	},
	CodeUnique: {
		Cause:   "A kind declares a value as unique, like a host name or a port, and two specs have the same: in a cluster, of a tenant or in the fleet, as the kind says.",
		Example: Example{"services/shop/notes/balancer.yaml", "apiVersion: easy.example.com/v1\nkind: L7Balancer\nmetadata: {name: notes}\nspec: {hosts: [shop.example.com], upstreams: {web: {}}}\n", "host \"shop.example.com\": stands at services/shop/balancer/balancer.yaml:5:11 too, and has to be the only one in the fleet"},
		WayOut:  "Give one of the two another value. The message names where the other stands." + betweenTenants,
	},
	CodeVersion: {
		Cause:   "The Kubernetes version of a cluster (spec.kubernetes) does not serve this version of the kind any more, or not yet; or it is a custom resource whose CustomResourceDefinition is neither in a unit nor in the folder of schemas, so that nothing is known of it.",
		Example: Example{"services/shop/notes/notes.yaml", "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: notes, namespace: shop}\nspec: {minAvailable: 1}\n", "removed in Kubernetes 1.25, write policy/v1 PodDisruptionBudget"},
		WayOut:  "Write the version that the message names. For a custom resource, put the definition into the folder of schemas, or run swell facts pull; checks.unknownKinds of the root's swell.yaml says what becomes of those without.",
	},
	CodeTenancy: {
		Cause:   "The Tenant that the unit belongs to does not let its units have this object, this namespace, this key or this image; or the unit stands in a folder that is not the tenant's.",
		Example: Example{"fleet/tenants.yaml", "apiVersion: swell.sh/v1\nkind: Tenant\nmetadata: {name: shop}\nspec: {namespaces: [shop]}\n", "is no namespace of tenant shop"},
		WayOut:  "Change the object; or have whoever owns the fleet's folder change the Tenant that the message names.",
	},
	CodeCompat: {
		Cause:  "A kind's .proto or kind.yaml, or a CustomResourceDefinition, is not compatible with what it was in the base: a document that was good may be refused, lose a value or mean something else. Documents of the tree may all be good: those of other branches, and objects in clusters, are not in it.",
		WayOut: "Add beside what there is, in place of changing it: a new field, a new value. Where the break is meant and no document of the tree has a problem, write the rule, the place and the reason into spec.checks.allowedChanges of the root's swell.yaml.",
	},
}
