// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package compat

// The rules for easy kinds.
const (
	KindRemoved          Rule = "KIND_REMOVED"
	KindRenamed          Rule = "KIND_RENAMED"
	KindNamesChanged     Rule = "KIND_NAMES_CHANGED"
	KindScopeChanged     Rule = "KIND_SCOPE_CHANGED"
	KindObjectRemoved    Rule = "KIND_OBJECT_REMOVED"
	OverrideForbidden    Rule = "OVERRIDE_FORBIDDEN"
	OverrideTaken        Rule = "OVERRIDE_TAKEN"
	FromFileForbidden    Rule = "FROM_FILE_FORBIDDEN"
	FieldNamesChanged    Rule = "FIELD_NAMES_CHANGED"
	FieldRemoved         Rule = "FIELD_REMOVED"
	FieldNotReserved     Rule = "FIELD_NOT_RESERVED"
	FieldRenamed         Rule = "FIELD_RENAMED"
	FieldJSONNameChanged Rule = "FIELD_JSON_NAME_CHANGED"
	FieldNumberChanged   Rule = "FIELD_NUMBER_CHANGED"
	FieldTypeChanged     Rule = "FIELD_TYPE_CHANGED"
	FieldTypeNarrowed    Rule = "FIELD_TYPE_NARROWED"
	FieldCardinality     Rule = "FIELD_CARDINALITY_CHANGED"
	FieldPresence        Rule = "FIELD_PRESENCE_CHANGED"
	FieldDefault         Rule = "FIELD_DEFAULT_CHANGED"
	FieldRequired        Rule = "FIELD_REQUIRED"
	FieldImmutable       Rule = "FIELD_IMMUTABLE"
	FieldClientOnly      Rule = "FIELD_CLIENT_ONLY"
	ListKeysChanged      Rule = "LIST_KEYS_CHANGED"
	MergeStrategy        Rule = "MERGE_STRATEGY_CHANGED"
	OneofJoined          Rule = "ONEOF_JOINED"
	OneofLeft            Rule = "ONEOF_LEFT"
	OneofRequired        Rule = "ONEOF_REQUIRED"
	EnumValueRemoved     Rule = "ENUM_VALUE_REMOVED"
	EnumValueRenamed     Rule = "ENUM_VALUE_RENAMED"
	EnumValueRenumbered  Rule = "ENUM_VALUE_RENUMBERED"
	ReservedRemoved      Rule = "RESERVED_REMOVED"
	ReservedReused       Rule = "RESERVED_REUSED"
	RuleTightened        Rule = "RULE_TIGHTENED"
	RuleExpression       Rule = "RULE_EXPRESSION_CHANGED"
	MessageRenamed       Rule = "MESSAGE_RENAMED"
)

// The rules for CustomResourceDefinitions.
const (
	CRDRemoved         Rule = "CRD_REMOVED"
	CRDNamesChanged    Rule = "CRD_NAMES_CHANGED"
	CRDScopeChanged    Rule = "CRD_SCOPE_CHANGED"
	CRDVersionRemoved  Rule = "CRD_VERSION_REMOVED"
	CRDVersionUnserved Rule = "CRD_VERSION_NOT_SERVED"
	CRDStorageRemoved  Rule = "CRD_STORAGE_VERSION_REMOVED"
	CRDSubresource     Rule = "CRD_SUBRESOURCE_REMOVED"
	CRDFieldRemoved    Rule = "CRD_FIELD_REMOVED"
	CRDTypeChanged     Rule = "CRD_TYPE_CHANGED"
	CRDNullable        Rule = "CRD_NOT_NULLABLE"
	CRDRequired        Rule = "CRD_FIELD_REQUIRED"
	CRDDefault         Rule = "CRD_DEFAULT_CHANGED"
	CRDEnum            Rule = "CRD_ENUM_TIGHTENED"
	CRDPattern         Rule = "CRD_PATTERN_CHANGED"
	CRDFormat          Rule = "CRD_FORMAT_CHANGED"
	CRDBound           Rule = "CRD_BOUND_TIGHTENED"
	CRDListChanged     Rule = "CRD_LIST_TYPE_CHANGED"
	CRDUnknownFields   Rule = "CRD_UNKNOWN_FIELDS_PRUNED"
	CRDExpression      Rule = "CRD_EXPRESSION_CHANGED"
)

// Rules are all rules: how severe a change is that they are about, and why.
var Rules = map[Rule]struct {
	Severity Severity
	Why      string
}{
	KindRemoved:          {Breaking, "documents of the kind are of an unknown kind"},
	KindRenamed:          {Breaking, "documents of the kind are of an unknown kind"},
	KindNamesChanged:     {Breaking, "servers know the kind by its plural, and programs by its other names"},
	KindScopeChanged:     {Breaking, "a server takes no definition with another scope"},
	KindObjectRemoved:    {Breaking, "overrides name objects of the kind by their ids"},
	OverrideForbidden:    {Breaking, "documents with spec.override are refused"},
	OverrideTaken:        {Breaking, "spec.override of documents is read as the new field"},
	FromFileForbidden:    {Breaking, "documents with fromFile are refused"},
	FieldNamesChanged:    {Breaking, "documents spell the fields as before"},
	FieldRemoved:         {Breaking, "documents that have the field are refused"},
	FieldNotReserved:     {Warning, "somebody may give the name or the number to another field"},
	FieldRenamed:         {Breaking, "documents that have the field are refused"},
	FieldJSONNameChanged: {Warning, "programs that read the message from JSON do not find the field"},
	FieldNumberChanged:   {Breaking, "programs built from the .proto read the field by its number"},
	FieldTypeChanged:     {Breaking, "documents that have the field are refused, or mean something else"},
	FieldTypeNarrowed:    {Breaking, "some documents that have the field are refused"},
	FieldCardinality:     {Breaking, "a value, a list and a map are written in different ways"},
	FieldPresence:        {Warning, "whether the field is absent, or empty, is told apart in another way"},
	FieldDefault:         {Breaking, "documents without the field mean something else"},
	FieldRequired:        {Breaking, "documents without the field are refused"},
	FieldImmutable:       {Breaking, "servers refuse changes of the field"},
	FieldClientOnly:      {Breaking, "servers drop the field"},
	ListKeysChanged:      {Breaking, "items without the keys, or with the same, are refused, and lists are merged otherwise"},
	MergeStrategy:        {Warning, "patches of kustomize are merged otherwise"},
	OneofJoined:          {Breaking, "documents with two fields of the oneof are refused"},
	OneofLeft:            {Warning, "the field and others of the oneof may be set together"},
	OneofRequired:        {Breaking, "documents with none of its fields are refused"},
	EnumValueRemoved:     {Breaking, "documents with the value are refused"},
	EnumValueRenamed:     {Breaking, "documents with the value are refused"},
	EnumValueRenumbered:  {Breaking, "documents may have the number, and programs read the value by it"},
	ReservedRemoved:      {Warning, "what was reserved may be used for something else"},
	ReservedReused:       {Breaking, "older documents and programs know it as something else"},
	RuleTightened:        {Breaking, "some values that were good are refused"},
	RuleExpression:       {Warning, "only the documents tell whether it refuses what was good"},
	MessageRenamed:       {Warning, "programs built from the .proto know the message by its name"},

	CRDRemoved:         {Breaking, "where it is applied, a server deletes all objects with it"},
	CRDNamesChanged:    {Breaking, "documents and programs know the kind by its names"},
	CRDScopeChanged:    {Breaking, "a server takes no definition with another scope"},
	CRDVersionRemoved:  {Breaking, "documents of the version are refused"},
	CRDVersionUnserved: {Breaking, "documents of the version are refused"},
	CRDStorageRemoved:  {Breaking, "a server refuses to forget a version that it has stored objects of"},
	CRDSubresource:     {Breaking, "controllers cannot write to it any more"},
	CRDFieldRemoved:    {Breaking, "a server drops the field without a word"},
	CRDTypeChanged:     {Breaking, "objects that have the field are refused"},
	CRDNullable:        {Breaking, "objects with null are refused"},
	CRDRequired:        {Breaking, "objects without the field are refused"},
	CRDDefault:         {Breaking, "objects without the field mean something else"},
	CRDEnum:            {Breaking, "some values that were good are refused"},
	CRDPattern:         {Breaking, "some values that were good may be refused"},
	CRDFormat:          {Breaking, "some values that were good are refused"},
	CRDBound:           {Breaking, "some values that were good are refused"},
	CRDListChanged:     {Breaking, "changes of several writers are merged otherwise, and items with the same keys are refused"},
	CRDUnknownFields:   {Breaking, "a server drops fields that the schema does not know"},
	CRDExpression:      {Warning, "only the objects tell whether it refuses what was good"},
}
