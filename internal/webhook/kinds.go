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
	// not know: each question is a request to the API server. foundFor is how long
	// a kind is taken to be served as it was found.
	unknownFor = 10 * time.Second
	foundFor   = time.Minute
	maxKinds   = 2048
	// questionsPerSecond and questionsAtOnce are far more than are needed where
	// Applications name what there is: a kind is asked for once in a while.
	questionsPerSecond = 5
	questionsAtOnce    = 50
)

// kinds tells where the hub serves the kinds of a manifest.
type kinds struct {
	mapper meta.RESTMapper
	now    cache.Clock
	// known are objects by kind, as the hub has
	// told of them or as they were guessed; whatever identity they have is replaced.
	known *cache.LRUExpireCache
	// questions bounds what is asked of it: whoever may create ConfigMaps can name
	// any number of kinds.
	questions *rate.Limiter
}

func newKinds(mapper meta.RESTMapper, now cache.Clock) *kinds {
	return &kinds{
		mapper: mapper, now: now,
		known:     cache.NewLRUExpireCacheWithClock(maxKinds, now),
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
	if known, ok := k.known.Get(gvk); ok {
		object, _ := known.(mutate.Object)
		object.ID = id
		return object, nil
	}
	guess, _ := meta.UnsafeGuessKindToResource(gvk)
	guessed := mutate.Object{Ref: manifest.Ref{ID: id, Resource: guess}, Guessed: true}
	if !k.questions.AllowN(k.now.Now(), 1) {
		return guessed, nil
	}
	mapping, err := k.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		k.known.Add(gvk, guessed, unknownFor)
		return guessed, nil
	}
	if err != nil {
		return mutate.Object{}, fmt.Errorf("find the resource of %s: %w", shown(gvk), err)
	}
	found := mutate.ObjectAt(id, mapping)
	k.known.Add(gvk, found, foundFor)
	return found, nil
}

func shown(gvk schema.GroupVersionKind) string { return gvk.GroupVersion().String() + " " + gvk.Kind }
