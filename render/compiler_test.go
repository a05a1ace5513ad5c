package render

import (
	"os"
	"testing"

	"github.com/swell-sh/swell/config"
)

func TestExample(t *testing.T) {
	var c Compiler
	s := c.Snapshot("", config.Files(os.DirFS("../testdata/monorepo")))
	t.Log("\n" + s.Problems.String())
	for p, u := range s.Units {
		for target, b := range u.Bundles {
			t.Log(p, target, len(b.Objects), u.Needs[target])
			for _, o := range b.Objects {
				if p == "services/shop/cart" && target == "sas-1/rz00a" {
					t.Log(string(o.JSON))
				}
			}
		}
	}
}
