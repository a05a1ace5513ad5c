// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/schema"
)

// Resource is the plural name of a kind in a cluster, as the paths of its API and the rules
// of RBAC have it: deployments. Of a kind that nothing defines there it is a guess, from the
// kind's name.
func (s *Snapshot) Resource(cluster *config.Cluster, apiVersion, kind string) string {
	if k := s.world.hard.ofCluster(cluster).Kind(apiVersion, kind); k != nil {
		return k.Resource()
	}
	return schema.Plural(kind)
}
