package manifest_test

import (
	"testing"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/check"
)

func marks() manifest.Marks {
	return manifest.Marks{
		Labels:      map[string]string{"owned-by": "me"},
		Annotations: map[string]string{"owner": "me a", "owner-uid": "1"},
	}
}

func TestMarksOn(t *testing.T) {
	tests := []struct{ why, yaml, want string }{
		{
			why:  "own labels and annotations stay beside the marks",
			yaml: "{metadata: {name: a, labels: {app: web}, annotations: {note: x}}, spec: {n: 1}}",
			want: "{metadata: {name: a, labels: {app: web, owned-by: me}, annotations: {note: x, owner: me a, owner-uid: '1'}}, spec: {n: 1}}",
		},
		{
			why:  "metadata that is missing is made",
			yaml: "{spec: {n: 1}}",
			want: "{metadata: {labels: {owned-by: me}, annotations: {owner: me a, owner-uid: '1'}}, spec: {n: 1}}",
		},
		{
			why:  "a mark wins over a value of the resource: nobody else may say who owns it",
			yaml: "{metadata: {labels: {owned-by: you}, annotations: {owner: you}}}",
			want: "{metadata: {labels: {owned-by: me}, annotations: {owner: me a, owner-uid: '1'}}}",
		},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			resource := object(t, test.yaml)
			got := marks().On(resource)
			check.Equal(t, "marked resource", object(t, test.want), got)
			check.Equal(t, "the argument afterwards", object(t, test.yaml), resource)
		})
	}
}

func TestMarksProve(t *testing.T) {
	tests := []struct {
		why, yaml string
		want      bool
	}{
		{"all annotations are there", "{metadata: {annotations: {owner: me a, owner-uid: '1', other: x}}}", true},
		{"a label proves nothing, so that a lost one does no harm", "{metadata: {labels: {owned-by: you}, annotations: {owner: me a, owner-uid: '1'}}}", true},
		{"one annotation is not enough", "{metadata: {labels: {owned-by: me}, annotations: {owner: me a}}}", false},
		{"another owner is not us", "{metadata: {annotations: {owner: me b, owner-uid: '1'}}}", false},
		{"a value of another type is not the text", "{metadata: {annotations: {owner: me a, owner-uid: 1}}}", false},
		{"an object without metadata", "{spec: {}}", false},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			check.Equal(t, "they prove it", test.want, marks().Prove(object(t, test.yaml)))
		})
	}
	check.Equal(t, "no marks at all prove an object to be ours", false, (manifest.Marks{}).Prove(object(t, "{metadata: {annotations: {a: b}}}")))
}

func TestIsReserved(t *testing.T) {
	tests := map[string]bool{
		"krake.dev/owned-by":         true,
		"krake.dev/anything":         true,
		"holder.krake.dev/edge":      true,
		"a.b.krake.dev/c":            true,
		"krake.dev":                  true, // a name without a prefix
		"app.kubernetes.io/name":     false,
		"notkrake.dev/owned-by":      false,
		"krake.dev.example.org/name": false,
		"example.org/krake.dev":      false,
		"":                           false,
	}
	for key, want := range tests {
		check.Equal(t, key, want, manifest.IsReserved(key))
	}
}
