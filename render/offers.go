package render

type offers struct{}

func (w *world) defineOffers(p *pass) *offers {
	if p.before != nil {
		return p.before.offers
	}
	return &offers{}
}
func (o *offers) hash(name string) string { return "" }

func splitDataPath(name string) []string { return nil }
