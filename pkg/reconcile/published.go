package reconcile

import (
	"bytes"
	"reflect"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// published is what is stored for people to read, and what it was made from: most passes
// would make the same documents again, of all objects, to find that they are stored.
type published struct {
	// version is that of the ConfigMap that has the documents.
	version string
	learned []map[string]any
	// plan is that of all objects; each had this revision and was seen like this.
	plan      *keptPlan
	revisions []string
	seen      []manifest.Packed
}

// isPublished tells if nothing has changed of what was published. Each of the objects is
// as the spec says: of one that is not, other things matter as well.
func (p *pass) isPublished() bool {
	last := p.memory.published
	if last == nil || last.plan != p.memory.planned || !p.areMended() {
		return false
	}
	for i := range p.planned {
		if p.planned[i].Revision != last.revisions[i] || !bytes.Equal(p.observed[i].Projection, last.seen[i]) {
			return false
		}
	}
	return p.app.Version == last.version && p.app.LastApplied.IsStored() && p.app.LastObserved.IsStored() && reflect.DeepEqual(p.app.Learned, last.learned)
}

// arePublished takes note that what was published is stored.
func (p *pass) arePublished() {
	if !p.areMended() {
		p.memory.published = nil
		return
	}
	last := &published{version: p.app.Version, learned: p.app.Learned, plan: p.memory.planned}
	for i := range p.planned {
		last.revisions = append(last.revisions, p.planned[i].Revision)
		last.seen = append(last.seen, p.observed[i].Projection)
	}
	p.memory.published = last
}

// areMended tells if all objects are as the spec says, and no others matter.
func (p *pass) areMended() bool {
	for i := range p.planned {
		if !p.mended[i] || p.planned[i].forgot || p.observed[i].Projection == nil {
			return false
		}
	}
	return len(p.secrets) == 0
}
