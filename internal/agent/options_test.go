package agent

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		name      string
		arguments []string
		want      []string // each complaint
	}{
		{"the defaults can be used", nil, nil},
		{"a cluster of another name", []string{"--cluster=edge-1"}, nil},
		{"the name gets into labels, finalizers and the name of a Lease", []string{"--cluster=Edge_1"}, []string{
			`--cluster: "Edge_1": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', ` +
				`and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`,
		}},
		{"several mistakes are told at once", []string{"--namespace=", "--concurrency=0", "--log-format=xml"}, []string{
			`--log-format: "xml" is neither json nor text`, "--namespace: must not be empty", "--concurrency: must be at least 1",
		}},
		{"a hub that is another cluster", []string{"--hub-kubeconfig=hub", "--require-service-account"}, nil},
		{"cluster scope for a hub elsewhere, each Application with rights of its own", []string{"--scope=cluster", "--hub-kubeconfig=hub", "--require-service-account"}, nil},
		{"a hub elsewhere would own the cluster", []string{"--scope=cluster", "--hub-kubeconfig=hub"}, []string{
			"--scope=cluster with --hub-kubeconfig: every user who writes to the hub would control this cluster: add --require-service-account",
		}},
		{"a map of namespaces between two clusters", []string{"--namespace-map=a=b", "--hub-namespaces=a", "--hub-kubeconfig=hub", "--hub-uid=0"}, nil},
		{"a map in one cluster leads to where the user has no rights", []string{"--namespace-map=a=b", "--hub-namespaces=a"}, []string{
			"--namespace-map: without --hub-kubeconfig hub and target are one cluster, and an Application could have objects in a namespace " +
				"where its user has no rights: leave it out, and create the Applications in the namespaces of their objects",
		}},
		{"a map, and it is not known whether these are two clusters", []string{"--namespace-map=a=b", "--hub-namespaces=a", "--hub-kubeconfig=hub"}, []string{
			"--namespace-map: the agent has to know that its cluster is not the hub: set --hub-uid to the UID of the hub's namespace kube-system, as a new kubectl krake enrol does",
		}},
		{"the UID of the hub for nothing", []string{"--hub-kubeconfig=hub", "--hub-uid=0"}, []string{"--hub-uid: has no effect without --namespace-map: leave it out"}},
		{"a Lease that cannot be kept", []string{"--leader-elect-lease-duration=10s", "--leader-elect-retry-period=6s", "--heartbeat-interval=0"}, []string{
			"--leader-elect-renew-deadline: must be less than --leader-elect-lease-duration",
			"--leader-elect-retry-period: must be more than 0, and at most half of --leader-elect-renew-deadline",
			"--heartbeat-interval: must be at least 1s",
		}},
		{"a renewal without a pause is a flood", []string{"--leader-elect-retry-period=0"}, []string{
			"--leader-elect-retry-period: must be more than 0, and at most half of --leader-elect-renew-deadline",
		}},
		{"more shards than the agent's role names", []string{"--shards=9"}, []string{"--shards: must be 1 to 8"}},
		{"shards without Leases", []string{"--shards=2", "--leader-elect=false"}, []string{"--shards: needs --leader-elect: a Lease decides which replica has a shard"}},
		{"no holds, and no resync", []string{"--max-hold=0", "--resync-period=0"}, nil},
		{"a time before now, and a resync that is a poll", []string{"--max-hold=-1s", "--resync-period=10ms"}, []string{
			"--max-hold: must not be negative", "--resync-period: must be 0 or at least 1s",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var options Options
			flags := pflag.NewFlagSet("agent", pflag.ContinueOnError)
			options.AddFlags(flags)
			kit.Must(t, flags.Parse(c.arguments))
			var got []string
			if err := options.Validate(); err != nil {
				got = strings.Split(err.Error(), "\n")
			}
			check.Equal(t, "complaints", c.want, got)
		})
	}
}

// The defaults are those of the documentation.
func TestDefaults(t *testing.T) {
	var options Options
	options.AddFlags(pflag.NewFlagSet("agent", pflag.ContinueOnError))
	if options.MaxHold != 4*time.Hour || options.Resync != 10*time.Minute || options.Metrics.Address != ":8443" || !options.Lease.Elect {
		t.Errorf("defaults: %+v", options)
	}
	if server := options.Metrics.Server(); !server.SecureServing || server.FilterProvider == nil {
		t.Error("the metrics are served to everybody")
	}
}

// The namespaces of Applications on the hub and of their objects on the target are fixed at
// the start. No two namespaces of the hub share one on the target.
func TestNamespaces(t *testing.T) {
	for _, c := range []struct {
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
	} {
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
