package webhook

import (
	"fmt"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
)

const (
	// unknownFor is how long the hub is not asked again for a kind that it does
	// not know: each question is a request to the API server.
	unknownFor  = 10 * time.Second
	maxUnknowns = 1024
	// foundFor is how long a kind is taken to be served as it was found.
	foundFor = time.Minute
	// questionsPerSecond and questionsAtOnce are far more than are needed where
	// Applications name what there is: a kind is asked for once in a while.
	questionsPerSecond = 5
	questionsAtOnce    = 50
)

// kinds tells where the hub serves the kinds of a manifest.
type kinds struct {
	mapper meta.RESTMapper
	now    cache.Clock
	// found and unknown are what the hub has said of kinds.
	found, unknown *cache.LRUExpireCache
	// questions bounds what is asked of it: whoever may create ConfigMaps can name
	// any number of kinds.
	questions *rate.Limiter
}

func newKinds(mapper meta.RESTMapper, now cache.Clock) *kinds {
	return &kinds{
		mapper: mapper, now: now,
		found:     cache.NewLRUExpireCacheWithClock(maxUnknowns, now),
		unknown:   cache.NewLRUExpireCacheWithClock(maxUnknowns, now),
		questions: rate.NewLimiter(questionsPerSecond, questionsAtOnce),
	}
}

// objects gives the objects of the identities, in their order.
func (k *kinds) objects(ids []manifest.ID) ([]mutate.Object, error) {
	objects := make([]mutate.Object, 0, len(ids))
	for _, id := range ids {
		object := mutate.Object{Ref: manifest.Ref{ID: id}}
		if id.Name != "" {
			var err error
			if object, err = k.object(id); err != nil {
				return nil, err
			}
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// object locates one. A kind that only the target knows has a resource that is
// guessed, by which its rights are asked for, and is taken for namespaced: the
// agent sees.
func (k *kinds) object(id manifest.ID) (mutate.Object, error) {
	gvk := id.GroupVersionKind()
	guess, _ := meta.UnsafeGuessKindToResource(gvk)
	guessed := mutate.Object{Ref: manifest.Ref{ID: id, Resource: guess}, Guessed: true}
	if known, ok := k.found.Get(gvk); ok {
		found, _ := known.(mutate.Object)
		found.ID = id
		return found, nil
	}
	if _, asked := k.unknown.Get(gvk); asked || !k.questions.AllowN(k.now.Now(), 1) {
		return guessed, nil
	}
	mapping, err := k.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		k.unknown.Add(gvk, struct{}{}, unknownFor)
		return guessed, nil
	}
	if err != nil {
		return mutate.Object{}, fmt.Errorf("find the resource of %s: %w", shown(gvk), err)
	}
	found := mutate.Object{
		Ref:           manifest.Ref{ID: id, Resource: mapping.Resource},
		ClusterScoped: mapping.Scope.Name() != meta.RESTScopeNameNamespace,
	}
	k.found.Add(gvk, found, foundFor)
	return found, nil
}

func shown(gvk schema.GroupVersionKind) string { return gvk.GroupVersion().String() + " " + gvk.Kind }
