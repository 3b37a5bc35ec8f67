package enrol

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/krake-observer/krake-observer/test/check"
)

// valid returns options of which a test changes one.
func valid(t *testing.T) Options {
	t.Helper()
	var o Options
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.AddFlags(flags)
	check.Must(t, flags.Parse([]string{"--out=east"}))
	o.Cluster = "east"
	return o
}

func TestOptions(t *testing.T) {
	// A stolen token of an enrolled cluster is of no use after 30 days, unless the administrator chooses another time.
	check.Equal(t, "the default of --token-duration", 30*24*time.Hour, valid(t).TokenDuration)
	for _, c := range []struct {
		why    string
		change func(*Options)
		want   string // part of the message; empty: valid
	}{
		{"the defaults", func(*Options) {}, ""},
		{"there has to be one", func(o *Options) { o.Cluster = "" }, "cluster name"},
		{"the hub enrols itself by manifests/base", func(o *Options) { o.Cluster = "local" }, "the hub itself"},
		{"Pods without an account have that of this name", func(o *Options) { o.Cluster = "default" }, "special meaning"},
		{"force-delete has it for all clusters", func(o *Options) { o.Cluster = "true" }, "special meaning"},

		{"namespaces", func(o *Options) { o.HubNamespaces = []string{"a", "b"} }, ""},
		{"a namespace has such a name", func(o *Options) { o.HubNamespaces = []string{"A"} }, `hub namespace "A"`},
		{"the agent would read what runs the hub", func(o *Options) { o.HubNamespaces = []string{"kube-system"} }, "it may have no Applications"},
		{"also by default", func(o *Options) { o.Cluster = "krake-system" }, `hub namespace "krake-system"`},

		{"a map", func(o *Options) { o.HubNamespaces, o.NamespaceMap = []string{"a", "b"}, []string{"a=x", "b=y"} }, ""},
		{"what is not read is not mapped", func(o *Options) { o.NamespaceMap = []string{"west=apps"} }, "west is not among"},
		{"both sides are namespaces", func(o *Options) { o.NamespaceMap = []string{"east=A"} }, "hub=target"},

		{"the API server makes no shorter one", func(o *Options) { o.TokenDuration = 9 * time.Minute }, "--token-duration"},
		{"another address", func(o *Options) { o.HubServer = "https://hub.example.org:6443/k8s" }, ""},
		{"a token goes to nobody in the clear", func(o *Options) { o.HubServer = "http://hub.example.org" }, "--hub-server"},
		{"nor is there a password in it", func(o *Options) { o.HubServer = "https://a:b@hub.example.org" }, "--hub-server"},

		{"strict", func(o *Options) { o.RequireServiceAccount = true }, ""},
		{"strict, with reach", func(o *Options) { o.RequireServiceAccount, o.Reach.Scope = true, "cluster" }, ""},
		{"the agent's own rights do not reach that far", func(o *Options) { o.Reach.Scope = "cluster" }, "--require-service-account"},
		{"hooks", func(o *Options) { o.Hooks, o.Cluster = true, strings.Repeat("e", 51) }, ""},
		{"Pods call them by a name", func(o *Options) { o.Hooks, o.Cluster = true, strings.Repeat("e", 52) }, "give the cluster a shorter name"},
		{"a guard", func(o *Options) { o.Guard, o.Cluster = true, strings.Repeat("e", 51) }, ""},
		{"the API server calls it by a name", func(o *Options) { o.Guard, o.Cluster = true, strings.Repeat("e", 52) }, "--guard: the Service would be called krake-guard-ee"},
		{"a name is too long for both", func(o *Options) { o.Hooks, o.Guard, o.Cluster = true, true, strings.Repeat("e", 52) }, "shorter name\n--guard: "},
		{"the files go somewhere", func(o *Options) { o.Out = "" }, "--out"},
		{"each mistake is told", func(o *Options) { o.Out, o.TokenDuration = "", 0 }, "--token-duration: must be at least 10m0s\n--out: must name a folder"},
	} {
		t.Run(c.why, func(t *testing.T) {
			o := valid(t)
			c.change(&o)
			check.Fails(t, "options", o.Validate(), c.want)
		})
	}
}

// A namespace that is named twice counts once.
func TestNamespaces(t *testing.T) {
	o := Options{Cluster: "east"}
	names, named := o.namespaces()
	check.Equal(t, "by default", []string{"east"}, names)
	check.Equal(t, "named by default", false, named)
	o.HubNamespaces = []string{"b", "a", "b"}
	names, named = o.namespaces()
	check.Equal(t, "by name", []string{"a", "b"}, names)
	check.Equal(t, "named by name", true, named)
}
