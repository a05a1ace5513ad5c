// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package serve

import "github.com/swell-sh/swell/config"

// Local is the user of this process as an operator.
func Local(api config.API, name string) Who {
	who := Who{Name: name}
	for _, o := range api.Operators {
		if o.User == name {
			who.Also = o.Emails
		}
	}
	return who
}

// AsRoot is an operator who became another user by sudo.
func AsRoot(api config.API, name, became string) Who {
	who := Local(api, name)
	return Who{Name: name + " as " + became, Also: append([]string{name}, who.Also...)}
}
