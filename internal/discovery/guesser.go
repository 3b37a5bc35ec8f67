package discovery

import (
	"fmt"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
)

const (
	// placedFor is how long a guesser relies on a kind that it has found. It is shorter
	// than foundFor, because a guesser watches no definitions.
	placedFor = time.Minute
	maxKinds  = 2048
	// questionsPerSecond and questionsAtOnce are far more than Applications need whose
	// kinds exist: each of those is asked for once per placedFor.
	questionsPerSecond = 5
	questionsAtOnce    = 50
)

// Guesser finds where a hub serves the kinds of a manifest, and guesses where the hub
// does not know a kind: perhaps the target does.
type Guesser struct {
	mapper meta.RESTMapper
	now    cache.Clock
	// known are objects by kind, found or guessed, whose identity is replaced.
	known *cache.LRUExpireCache
	// questions bounds the requests to the hub, because each user who may create
	// ConfigMaps can name any number of kinds.
	questions *rate.Limiter
}

// NewGuesser returns a Guesser that asks the mapper.
func NewGuesser(mapper meta.RESTMapper, now cache.Clock) *Guesser {
	return &Guesser{
		mapper: mapper, now: now,
		known:     cache.NewLRUExpireCacheWithClock(maxKinds, now),
		questions: rate.NewLimiter(questionsPerSecond, questionsAtOnce),
	}
}

// Objects returns the objects of the identities, in their order.
func (g *Guesser) Objects(ids []manifest.ID) ([]mutate.Object, error) {
	objects := make([]mutate.Object, 0, len(ids))
	for _, id := range ids {
		object := mutate.Object{Ref: manifest.Ref{ID: id}}
		if id.Name != "" {
			var err error
			if object, err = g.object(id); err != nil {
				return nil, err
			}
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// object locates one object. A kind that the hub does not know has a guessed resource, for
// which the rights of the user are checked, and counts as namespaced.
func (g *Guesser) object(id manifest.ID) (mutate.Object, error) {
	gvk := id.GroupVersionKind()
	if known, ok := g.known.Get(gvk); ok {
		object, _ := known.(mutate.Object)
		object.ID = id
		return object, nil
	}
	guess, _ := meta.UnsafeGuessKindToResource(gvk)
	guessed := mutate.Object{Ref: manifest.Ref{ID: id, Resource: guess}, Guessed: true}
	if !g.questions.AllowN(g.now.Now(), 1) {
		return guessed, nil
	}
	mapping, err := g.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		g.known.Add(gvk, guessed, unknownFor)
		return guessed, nil
	}
	if err != nil {
		return mutate.Object{}, fmt.Errorf("cannot find the resource of %s %s: %w", gvk.GroupVersion(), gvk.Kind, err)
	}
	found := mutate.ObjectAt(id, mapping)
	g.known.Add(gvk, found, placedFor)
	return found, nil
}
