// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package order

import "github.com/swell-sh/swell/config"

// Within says whether all that the scope has is in another one too, as far as their
// fields tell.
func (s Scope) Within(outer Scope) bool {
	return config.Within(string(s.Unit), string(outer.Unit)) &&
		(outer.Target == "" || s.Target == outer.Target || s.Target != "" && s.Target.Cluster() == string(outer.Target)) &&
		(outer.Tenant == "" || s.Tenant == outer.Tenant) &&
		(outer.Wave == "" || s.Wave == outer.Wave)
}

// Meets says whether something may be in both scopes, as far as their fields tell.
func (s Scope) Meets(other Scope) bool {
	units := config.Within(string(s.Unit), string(other.Unit)) || config.Within(string(other.Unit), string(s.Unit))
	targets := s.Target == "" || other.HasTarget(s.Target) || s.HasTarget(other.Target)
	return units && targets && (s.Tenant == "" || other.Tenant == "" || s.Tenant == other.Tenant) && (s.Wave == "" || other.Wave == "" || s.Wave == other.Wave)
}

// HeldBy are the verbs whose standing orders keep what the verb begins from being written;
// empty where nothing does.
func (v Verb) HeldBy() []Verb {
	switch v {
	case Rollback:
		return []Verb{Pause, Mask}
	case Retry, Promote:
		return []Verb{Pause, Freeze, Mask}
	}
	return nil
}

// EndedBy parts the orders in force from those that an order ends: those of the verb that
// it ends, with its scope or one that lies within it.
func (s Standing) EndedBy(o *Order) (left, ended Standing) {
	for _, is := range s {
		if is.Verb == o.Verb.Ends() && is.Scope.Within(o.Scope) {
			ended = append(ended, is)
		} else {
			left = append(left, is)
		}
	}
	return left, ended
}

// Of are the orders of a verb.
func (s Standing) Of(verb Verb) Standing {
	var of Standing
	for _, o := range s {
		if o.Verb == verb {
			of = append(of, o)
		}
	}
	return of
}

// With is what is in force once more orders are taken up, in their order.
func (s Standing) With(orders []Order) Standing {
	for i := range orders {
		o := &orders[i]
		if o.Verb.Stands() {
			s = append(s[:len(s):len(s)], *o)
		} else if o.Verb.Ends() != "" {
			s, _ = s.EndedBy(o)
		}
	}
	return s
}

// EndVerb is the verb that ends the standing orders of this one; empty where it has none.
func (v Verb) EndVerb() Verb {
	for end, of := range ends {
		if of == v {
			return end
		}
	}
	return ""
}
