package agent

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

// The namespaces of Applications on the hub and of their objects on the target are fixed at
// the start. No two namespaces of the hub share one on the target.
func TestNamespaces(t *testing.T) {
	cases := []struct {
		name      string
		arguments []string
		want      string // the complaint
	}{
		{"all, each by its own name", nil, ""},
		{"some", []string{"--hub-namespaces=edge-1,edge-2", "--namespaces=shop"}, ""},
		{"the layout of enrolment: one of the hub, with another name here", []string{"--hub-namespaces=edge-1", "--namespaces=shop", "--namespace-map=edge-1=shop"}, ""},
		{"the other one is not carried out at all", []string{"--hub-namespaces=a,c", "--namespace-map=a=b"}, ""},

		{"names that cannot be", []string{"--hub-namespaces=A", "--namespaces=b/c"}, `--hub-namespaces: "A"; --namespaces: "b/c"`},
		{"an entry without a target", []string{"--namespace-map=a"}, `--namespace-map: "a" is not of the form hub=target`},
		{"an empty target would be every namespace", []string{"--namespace-map=a=,b=c"}, `--namespace-map: ""`},
		{"one of the hub twice: which one counts?", []string{"--namespace-map=a=b,a=c"}, "--namespace-map: a namespace of the hub is in it twice"},
		{
			"two to one", []string{"--hub-namespaces=a,c", "--namespace-map=a=b,c=b"},
			"--namespace-map: Applications of a and of c would have their objects in one namespace, b",
		},
		{
			"to one that another has by its name", []string{"--hub-namespaces=a,b", "--namespace-map=a=b"},
			"--namespace-map: Applications of b and of a would have their objects in one namespace, b",
		},
		{
			"to one that another may have, as all are carried out", []string{"--namespace-map=a=b"},
			"--namespace-map: Applications of b and of a would have their objects in one namespace, b",
		},
		{"an entry that is never used is a mistake", []string{"--hub-namespaces=a", "--namespace-map=x=b"}, "--namespace-map: x=b: x is not among --hub-namespaces"},
		{"an entry that can only be refused", []string{"--hub-namespaces=a", "--namespaces=c", "--namespace-map=a=b"}, "--namespace-map: a=b: b is not among --namespaces"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			namespaces := namespacesOf(t, c.arguments...)
			got := ""
			if err := namespaces.validate(); err != nil {
				got = err.Error()
			}
			for part := range strings.SplitSeq(c.want, "; ") {
				if !strings.Contains(got, part) || c.want == "" && got != "" {
					t.Errorf("complaint %q, want %q", got, part)
				}
			}
		})
	}
}

// The reconciler uses the map. A namespace that is not in the map keeps its name.
func TestMapping(t *testing.T) {
	namespaces := namespacesOf(t, "--namespace-map=a=b", "--namespace-map=b=a,edge=shop")
	check.Equal(t, "mapping", map[string]string{"a": "b", "b": "a", "edge": "shop"}, namespaces.mapping())
}

func namespacesOf(t *testing.T, arguments ...string) Namespaces {
	t.Helper()
	var namespaces Namespaces
	flags := pflag.NewFlagSet("agent", pflag.ContinueOnError)
	namespaces.addFlags(flags)
	kit.Must(t, flags.Parse(arguments))
	return namespaces
}
