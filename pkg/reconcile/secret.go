package reconcile

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// hookSecret is a desired Secret of a hook. Its plan has digests instead of the values, which only
// their creator knows.
type hookSecret struct {
	*object

	// purpose is the use of the Secret.
	purpose mutate.HookSecret
}

// recorded returns the digests of the values in the documents.
func (s *hookSecret) recorded() map[string]any {
	data, _ := s.plan.Desired()["data"].(map[string]any)
	digests := maps.Clone(data)
	maps.DeleteFunc(digests, func(_ string, digest any) bool { _, ok := digest.(string); return !ok })
	return digests
}

// record puts the digests of the values into the desired state.
func (s *hookSecret) record(values map[string][]byte) {
	desired := maps.Clone(s.plan.Desired())
	desired["data"] = digestsOf(values)
	s.plan.Replace(desired)
}

func digestsOf(values map[string][]byte) map[string]any {
	digests := make(map[string]any, len(values))
	for key, value := range values {
		digests[key] = application.DigestOf(value)
	}
	return digests
}

// holding returns the Secret with values.
func (s *hookSecret) holding(values map[string][]byte) map[string]any {
	data := make(map[string]any, len(values))
	for key, value := range values {
		data[key] = base64.StdEncoding.EncodeToString(value)
	}
	body := s.plan.Body()
	body["data"] = data
	return body
}

// differences returns the differences between a live Secret and one with the values.
func (s *hookSecret) differences(values map[string][]byte, live map[string]any) schema.Differences {
	return s.plan.ObserveMarks().Compare(s.holding(values), live).Drift()
}

// altered returns the fields of a live Secret that differ from the agent's last write. That write
// had values with these digests.
func (s *hookSecret) altered(digests, live map[string]any) []schema.Path {
	values := valuesOf(live)
	paths := pathsOf(s.differences(values, live))
	for key, digest := range digests {
		if value, ok := values[key]; !ok || application.DigestOf(value) != digest {
			paths = append(paths, schema.Path{{Field: "data", Index: -1}, {Field: key, Index: -1}})
		}
	}
	slices.SortFunc(paths, func(a, b schema.Path) int { return strings.Compare(a.String(), b.String()) })
	return paths
}

// valuesOf returns the values of a live Secret.
func valuesOf(live map[string]any) map[string][]byte {
	data, _ := live["data"].(map[string]any)
	values := make(map[string][]byte, len(data))
	for key, value := range data {
		text, _ := value.(string)
		if decoded, err := base64.StdEncoding.DecodeString(text); err == nil {
			values[key] = decoded
		}
	}
	return values
}
