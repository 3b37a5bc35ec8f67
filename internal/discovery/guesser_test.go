package discovery

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/check"
)

// counting counts the questions that reach a mapper.
type counting struct {
	meta.RESTMapper
	asked int
	err   error
}

func (c *counting) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	c.asked++
	if c.err != nil {
		return nil, c.err
	}
	return c.RESTMapper.RESTMapping(kind, versions...)
}

// A kind that the hub does not know costs it one request per interval, however many
// Applications name it.
func TestUnknownKinds(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	known := meta.NewDefaultRESTMapper(nil)
	mapper := &counting{RESTMapper: known}
	k := NewGuesser(mapper, clock)
	opera := manifest.ID{APIVersion: "music.example.com/v1", Kind: "Opera", Name: "tosca"}
	look := func(why, resource string, clusterScoped bool, asked int) {
		t.Helper()
		mapper.asked = 0
		objects, err := k.Objects([]manifest.ID{opera, {}, opera})
		check.Must(t, err)
		if got := objects[2]; got.Resource.Resource != resource || got.ClusterScoped != clusterScoped || got.ID != opera {
			t.Errorf("%s: it is %+v", why, got)
		}
		check.Equal(t, why+": questions", asked, mapper.asked)
	}
	look("guessed", "operas", false, 1)
	look("not asked for again", "operas", false, 0)
	known.AddSpecific(opera.GroupVersionKind(), schema.GroupVersionResource{Group: "music.example.com", Version: "v1", Resource: "opere"},
		schema.GroupVersionResource{Group: "music.example.com", Version: "v1", Resource: "opera"}, meta.RESTScopeRoot)
	clock.SetTime(clock.Now().Add(unknownFor + time.Second))
	look("known after a while", "opere", true, 1)
	look("and remembered", "opere", true, 0)
	clock.SetTime(clock.Now().Add(placedFor + time.Second))
	mapper.err = errors.New("no answer")
	if _, err := k.Objects([]manifest.ID{opera}); err == nil {
		t.Error("no error where the hub does not answer")
	}
	mapper.err = nil

	// In a flood of kinds, resources are guessed.
	mapper.asked = 0
	for i := range 10 * questionsAtOnce {
		_, err := k.Objects([]manifest.ID{{APIVersion: "v1", Kind: fmt.Sprintf("Flood%d", i), Name: "a"}})
		check.Must(t, err)
	}
	if mapper.asked > questionsAtOnce {
		t.Errorf("%d questions at once, want at most %d", mapper.asked, questionsAtOnce)
	}
}
