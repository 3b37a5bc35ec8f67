package schema

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json" // reads integers as such
)

// Form is another form in which an API server stores an observed value: "500m" for 0.5, an absent
// value for zero, a default for an absent value. The caller finds forms in the types of the API, or
// in the server's answers, and passes them to [Schema.Accept].
type Form struct {
	// Path is the path in the desired object. Its indices are those of the desired elements.
	Path Path `json:"path"`
	// Want is the desired value, and Have the stored one, where nil is absent.
	//
	// For a list, Want is the desired length. Have is another length, or the digests of elements
	// that the server adds, or the places of the desired elements in the order in which it keeps
	// them.
	//
	// For a closed or an empty object, Want is the digest of the desired one, and Have nil if the server
	// drops it. For a field that the server adds to it, Have is the digest of the field.
	Want any `json:"want,omitempty"`
	Have any `json:"have,omitempty"`
}

// UnmarshalJSON keeps integers, because a float cannot represent each large integer.
func (f *Form) UnmarshalJSON(text []byte) error {
	type form Form // without this method
	return utiljson.Unmarshal(text, (*form)(f))
}

// IsAddition reports whether the server stores the desired value, and only adds something, or keeps
// its elements in another order.
func (f Form) IsAddition() bool {
	_, isList := f.Have.([]any)
	_, isLength := f.Want.(int64)
	return isLength && isList || f.IsDefault()
}

// IsDefault reports whether the server only adds a field to a closed object.
func (f Form) IsDefault() bool { return isSum(f.Want) && isSum(f.Have) }

// sumPrefix begins a digest.
const sumPrefix = "sha256:"

func isSum(value any) bool {
	text, ok := value.(string)
	return ok && strings.HasPrefix(text, sumPrefix)
}

// digest identifies a value without its text, which may be private.
func digest(value any) string {
	text, err := json.Marshal(value)
	if err != nil { // not JSON, which no object has
		return ""
	}
	sum := sha256.Sum256(text)
	return sumPrefix + hex.EncodeToString(sum[:16])
}

// isForeign reports whether a field may not stand in a closed object.
func (n object) isForeign(name string, value any) bool {
	if value == nil {
		return false
	}
	if _, known := n.find(name); known {
		return false
	}
	for _, form := range n.forms {
		if len(form.Path) > 0 && form.Path[len(form.Path)-1].Field == name && form.Have == digest(value) {
			return false
		}
	}
	return true
}

// mayBeAbsent reports whether an absent object equals the desired one, or the server drops it.
func (n object) mayBeAbsent() bool {
	return !n.closed && !n.isKept || slices.ContainsFunc(n.forms, func(form Form) bool { return len(form.Path) == 0 })
}

// isMissed reports that an empty list is absent, and that the server does not drop it.
func (n list) isMissed(want, have any) bool {
	return n.isKept && want != nil && have == nil && !n.forms.has(int64(0), nil)
}

// hasAll reports whether the schema has all fields of an object.
func (n object) hasAll(fields map[string]any) bool {
	for name := range fields {
		if _, known := n.find(name); !known {
			return false
		}
	}
	return true
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
