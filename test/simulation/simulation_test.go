package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

// The complete simulation with three clusters: enrolled agents with the shipped rights
// carry out, rest, repair and restart, and everything is measured.
func TestSmall(t *testing.T) {
	kit.Long(t, "it is a run of the simulation")
	options := Options{Clusters: 3, Applications: 30, Idle: 2 * time.Second, Drift: time.Second, PerMinute: 2000, Writes: 30}
	kit.Must(t, options.Validate())
	var table strings.Builder
	kit.Must(t, run(t.Context(), options, &table, t.Output()))
	for _, want := range []string{"at rest for 2s", "drift: repaired after", "memory of an agent", "all namespaces, by label"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("%q is not in\n%s", want, table.String())
		}
	}
}

func TestTake(t *testing.T) {
	r := reading{requests: counts{}, events: counts{}, watchers: counts{}}
	err := r.take(strings.NewReader(`# TYPE apiserver_request_total counter
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="configmaps",scope="resource",subresource="",verb="PATCH",version="v1"} 3
apiserver_request_total{code="201",component="apiserver",dry_run="",group="",resource="configmaps",scope="resource",subresource="",verb="PATCH",version="v1"} 1
apiserver_request_total{code="409",component="apiserver",dry_run="",group="",resource="configmaps",scope="resource",subresource="",verb="PATCH",version="v1"} 1
apiserver_request_total{code="200",component="apiserver",dry_run="",group="coordination.k8s.io",resource="leases",scope="resource",subresource="",verb="PUT",version="v1"} 1e+06
apiserver_request_total{code="201",component="apiserver",dry_run="",group="",resource="serviceaccounts",scope="resource",subresource="token",verb="POST",version="v1"} 2
apiserver_request_total{code="0",component="apiserver",dry_run="",group="",resource="",scope="",subresource="/metrics",verb="GET",version=""} 5
apiserver_request_duration_seconds_sum{resource="configmaps",verb="PATCH"} 99
# TYPE apiserver_longrunning_requests gauge
apiserver_longrunning_requests{component="apiserver",group="",resource="configmaps",scope="namespace",subresource="",verb="WATCH",version="v1"} 200
apiserver_longrunning_requests{component="apiserver",group="",resource="configmaps",scope="cluster",subresource="",verb="WATCH",version="v1"} 1
apiserver_longrunning_requests{component="apiserver",group="",resource="pods",scope="resource",subresource="exec",verb="CONNECT",version="v1"} 1
# TYPE apiserver_watch_events_sizes histogram
apiserver_watch_events_sizes_sum{group="",resource="configmaps",version="v1"} 16765
apiserver_watch_events_sizes_count{group="",resource="configmaps",version="v1"} 25
process_cpu_seconds_total 2.49
`))
	kit.Must(t, err)
	want := reading{
		requests: counts{"patch configmaps": 4, "patch configmaps (409)": 1, "update leases": 1e6, "create serviceaccounts/token": 2, "get": 5},
		watchers: counts{"configmaps": 201}, events: counts{"configmaps": 25}, bytes: 16765,
	}
	if diff := cmp.Diff(want, r, cmp.AllowUnexported(reading{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := r.take(strings.NewReader("apiserver_request_total{verb=\"GET\"} many\n")); err == nil {
		t.Error("what is no number is one")
	}
}

func TestCounts(t *testing.T) {
	now := counts{"patch configmaps": 30, "update leases": 200, "get": 1, "list configmaps": 0.3}
	before := counts{"patch configmaps": 10, "get": 1}
	if diff := cmp.Diff(counts{"patch configmaps": 20, "update leases": 200, "list configmaps": 0.3}, now.less(before)); diff != "" {
		t.Errorf("less (-want +got):\n%s", diff)
	}
	if got, want := now.less(before).String(), "200 update leases, 20.0 patch configmaps, 0.30 list configmaps"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := now.times(0.001).String(); got != "0.20 update leases, 0.03 patch configmaps" {
		t.Errorf("got %q", got)
	}
	if diff := cmp.Diff(counts{"patch configmaps": 30, "update leases": 200, "list configmaps": 0.3}, now.ofAgents()); diff != "" {
		t.Errorf("of agents (-want +got):\n%s", diff)
	}
	if got := now.sum("patch", "update"); got != 230 {
		t.Errorf("got %v", got)
	}
	if got := (counts{}).String(); got != "none" {
		t.Errorf("got %q", got)
	}
}

func TestBroken(t *testing.T) {
	cases := []struct {
		why  string
		make func(*results)
		want string
	}{
		{"heartbeats and lists", func(r *results) { r.idle.requests = counts{"update leases": 10, "list configmaps": 1} }, ""},
		{"an agent at rest writes a status", func(r *results) { r.idle.requests = counts{"patch configmaps": 2} }, "agents at rest make 2 writes: 2.0 patch configmaps"},
		{"an agent that starts again tells of it", func(r *results) { r.again.requests = counts{"create events": 1} }, "agents that start again make 1 writes: 1.0 create events"},
		{"an agent at rest reads objects", func(r *results) { r.idle.targets = counts{"get configmaps": 3, "list configmaps": 1} }, "agents at rest ask their clusters 3 times: 3.0 get configmaps, 1.0 list configmaps"},
	}
	for _, c := range cases {
		t.Run(c.why, func(t *testing.T) {
			var r results
			c.make(&r)
			if got := check.Message(r.broken()); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A drift that is not repaired is an error, because a run without its duration is
// worthless.
func TestDriftIsRepaired(t *testing.T) {
	plane, err := kit.SharedPlane(t.Context())
	kit.Must(t, err)
	t.Cleanup(func() { kit.Must(t, plane.Stop()) })
	f := &fleet{target: plane.RESTConfig(), spokes: []*spoke{{name: plane.NewNamespace(t, "simulation")}}}
	for i := range 2 {
		objects, err := f.objects(i)
		kit.Must(t, err)
		_, err = objects.Create(t.Context(), &unstructured.Unstructured{Object: objectOf(i)}, metav1.CreateOptions{})
		kit.Must(t, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if took, err := f.repaired(ctx, 0); err == nil {
		t.Errorf("a Service that nobody repairs is repaired after %s", took)
	}
	objects, err := f.objects(1)
	kit.Must(t, err)
	repair := func() error {
		for t.Context().Err() == nil {
			object, err := objects.Get(t.Context(), nameOf(1), metav1.GetOptions{})
			if err != nil {
				return err
			}
			if !isWanted(object.Object) {
				_, err := objects.Patch(t.Context(), nameOf(1), types.MergePatchType, []byte(`{"data": {"key": "value"}}`), metav1.PatchOptions{})
				return err
			}
		}
		return t.Context().Err()
	}
	repaired := make(chan error, 1)
	go func() { repaired <- repair() }()
	_, err = f.repaired(t.Context(), 1)
	kit.Must(t, err)
	kit.Must(t, <-repaired)
}

func TestRequestsToTheTargetAreNamed(t *testing.T) {
	for call, want := range map[string]string{
		"GET /api/v1/namespaces/n/configmaps/c":              "get configmaps",
		"GET /api/v1/namespaces/n/configmaps":                "list configmaps",
		"GET /api/v1/configmaps?watch=true":                  "watch configmaps",
		"GET /apis/apps/v1/namespaces/n/deployments?limit=1": "list deployments",
		"PATCH /apis/apps/v1/namespaces/n/deployments/d":     "patch deployments",
		"POST /api/v1/namespaces/n/events":                   "create events",
		"GET /api/v1/namespaces/kube-system":                 "get namespaces",
		"GET /apis":                                          "get",
		"GET /version":                                       "get",
	} {
		method, url, _ := strings.Cut(call, " ")
		if got := requestTo(httptest.NewRequestWithContext(t.Context(), method, url, http.NoBody)); got != want {
			t.Errorf("%s is called %q, want %q", call, got, want)
		}
	}
}

func TestBusiest(t *testing.T) {
	at := func(second, micro int64) coordinationv1.Lease {
		return coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: time.UnixMicro(second*1_000_000 + micro)}}}
	}
	leases := []coordinationv1.Lease{at(1, 0), at(1, 999_999), at(2, 0), at(3, 1), at(3, 2), at(3, 3), {}}
	if got := busiest(leases); got != 3 {
		t.Errorf("got %d", got)
	}
}

// The measurements before a failure are shown.
func TestWriteOfPart(t *testing.T) {
	var text strings.Builder
	results{Options: Options{Clusters: 2, Applications: 10}, enrolled: 3 * time.Second}.write(&text)
	if words := strings.Join(strings.Fields(text.String()), " "); !strings.Contains(words, "all clusters are enrolled 3.0 s") {
		t.Errorf("it is not in\n%s", text.String())
	}
}

// An idle watch sends a bookmark about once a minute.
func TestSent(t *testing.T) {
	var r results
	r.idle = window{reading: reading{events: counts{"configmaps": 100}}, long: 10 * time.Second}
	r.drift = window{reading: reading{events: counts{"configmaps": 250}}, long: 20 * time.Second}
	if got := r.sent(); got != 50 {
		t.Errorf("got %v", got)
	}
}

func TestToBeHeard(t *testing.T) {
	b := &bench{clusters: 4}
	for _, c := range []struct{ watchers, writes, want int }{{0, 10, 0}, {4, 10, 10}, {1, 10, 3}, {3, 10, 8}, {2, 3, 2}} {
		if got := b.toBeHeard(c.watchers, c.writes); got != c.want {
			t.Errorf("of %d writes %d clusters hear %d, want %d", c.writes, c.watchers, got, c.want)
		}
	}
}

func TestOptions(t *testing.T) {
	wrong := Options{Clusters: 0, Applications: -1}
	if err := wrong.Validate(); err == nil || strings.Count(err.Error(), "\n") != 4 {
		t.Errorf("complaints: %v", err)
	}
}
