// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"google.golang.org/protobuf/reflect/protoreflect"
)

// ranges are reserved numbers, each range without its end.
type ranges interface {
	Len() int
	Get(i int) [2]protoreflect.FieldNumber
}

// enumRanges are those of an enum, where an end is in its range.
type enumRanges struct{ protoreflect.EnumRanges }

// Get is one range without its end.
func (r enumRanges) Get(i int) [2]protoreflect.FieldNumber {
	of := r.EnumRanges.Get(i)
	return [2]protoreflect.FieldNumber{protoreflect.FieldNumber(of[0]), protoreflect.FieldNumber(of[1]) + 1}
}

func names(all protoreflect.Names) []protoreflect.Name {
	list := make([]protoreflect.Name, all.Len())
	for i := range list {
		list[i] = all.Get(i)
	}
	return list
}

// maxReserved is how many numbers of a range are looked at one by one.
const maxReserved = 1000

// reserved finds names and numbers that are neither reserved nor in use any more. What
// is in use is another finding.
func (c *comparison) reserved(d protoreflect.Descriptor, path []string, was []protoreflect.Name, numbers ranges, is protoreflect.Names, hasNumber func(int32) bool, hasName func(protoreflect.Name) bool) {
	for _, name := range was {
		if !is.Has(name) && !hasName(name) {
			c.add(ReservedRemoved, d, path, "the name %q was reserved, and is not any more", name)
		}
	}
	for i := range numbers.Len() {
		r := numbers.Get(i)
		for n := r[0]; n < r[1] && n < r[0]+maxReserved; n++ {
			if !hasNumber(int32(n)) {
				c.add(ReservedRemoved, d, path, "the number %d was reserved, and is not any more", n)
				break
			}
		}
	}
}
