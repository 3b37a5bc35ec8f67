package schema

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/json"
)

// Form is another form in which an API server stores an observed value: "500m" for 0.5, an absent
// value for zero, a default for an absent value. The caller finds forms in the types of the API, or
// in the server's answers, and passes them to [Schema.Accept].
type Form struct {
	// Path is the path in the desired object. Its indices are those of the desired elements.
	Path Path `json:"path"`
	// Want is the desired value, and Have the stored one, where nil is absent. For a list, they are
	// lengths.
	Want any `json:"want,omitempty"`
	Have any `json:"have,omitempty"`
}

// UnmarshalJSON keeps integers, because a float cannot represent each large integer.
func (f *Form) UnmarshalJSON(text []byte) error {
	type form Form // without this method
	return json.Unmarshal(text, (*form)(f))
}

// forms are the forms of one place of a schema.
type forms []Form

func (f forms) has(want, have any) bool {
	for i := range f {
		if equal(f[i].Want, want) && (f[i].Have == nil && have == nil || have != nil && equal(f[i].Have, have)) {
			return true
		}
	}
	return false
}

func (f forms) hasLength(want, have int) bool {
	return len(f) > 0 && f.has(int64(want), int64(have))
}

// with adds the forms whose path ends here.
func (f forms) with(known []Form, depth int) forms {
	all := slices.Clone(f)
	for _, form := range known {
		if len(form.Path) == depth && !f.has(form.Want, form.Have) {
			all = append(all, Form{Want: clone(form.Want), Have: clone(form.Have)})
		}
	}
	return all
}
