package webhook

import (
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
)

// placed has the places of the objects of a spec, of the former spec, and of the inventories.
type placed struct {
	wanted, former, held []manifest.Ref
	// unknown are the wanted objects whose kinds the API server does not have.
	unknown []bool
	// filled are the wanted Secrets whose values have sources.
	filled []bool
}

// candidates returns the objects of known kinds that no agent has yet, and that the writer may create. Secrets whose values have
// sources are not among them: they are created with their values.
func (p placed) candidates(resources []map[string]any, lacking sets.Set[mutate.Access]) []candidate {
	var candidates []candidate
	for i, ref := range p.wanted {
		if i < len(resources) && !p.unknown[i] && !p.filled[i] && !lacking.Has(creation(ref)) && len(mutate.Left(p.held, p.wanted[i:i+1])) > 0 {
			candidates = append(candidates, candidate{ref, i, resources[i]})
		}
	}
	return candidates
}

// needs returns the rights to do this with each kind, with the place of the first object of it.
func (p placed) needs(verbs ...string) []mutate.Need {
	return needsOf(p.wanted, func(i int) bool { return !p.unknown[i] }, verbs)
}

// agentNeeds returns the rights that an agent needs to carry the objects out as an account. It neither lists nor watches Secrets whose
// values have sources.
func (p placed) agentNeeds() []mutate.Need {
	watched := needsOf(p.wanted, func(i int) bool { return !p.unknown[i] && !p.filled[i] }, []string{"list", actAsToCreate})
	return append(watched, needsOf(p.wanted, func(i int) bool { return p.filled[i] }, []string{"get", actAsToCreate})...)
}

func needsOf(wanted []manifest.Ref, isMeant func(i int) bool, verbs []string) []mutate.Need {
	var needs []mutate.Need
	known := sets.Set[mutate.Access]{}
	for i, ref := range wanted {
		access := creation(ref)
		if !isMeant(i) || known.Has(access) {
			continue
		}
		known.Insert(access)
		for _, verb := range verbs {
			access.Verb = verb
			needs = append(needs, mutate.Need{Access: access, Path: mutate.ResourcePath(i)})
		}
	}
	return needs
}
