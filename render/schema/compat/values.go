// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"google.golang.org/protobuf/reflect/protoreflect"
)

func (c *comparison) rules(was, is protoreflect.FieldDescriptor, path []string)          {}
func (c *comparison) messageRules(was, is protoreflect.MessageDescriptor, path []string) {}
