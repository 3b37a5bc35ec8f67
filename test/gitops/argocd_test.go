package gitops

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/diff"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/health"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/utils/kube"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/utils/tracing"
	"github.com/go-logr/logr"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/test/kit"
)

// argoManager is the field manager of Argo CD.
const argoManager = "argocd-controller"

// luaCheck is a health check of Argo CD, a script.
type luaCheck struct {
	script string
	// openLibs is Argo CD's setting useOpenLibs: all libraries of Lua.
	openLibs bool
}

// shippedLua reads the check from data of Argo CD's ConfigMap.
func shippedLua(t testing.TB, data map[string]string) luaCheck {
	t.Helper()
	check := luaCheck{data["resource.customizations.health.ConfigMap"], data["resource.customizations.useOpenLibs.ConfigMap"] == "true"}
	if check.script == "" {
		t.Fatal("there is no health check")
	}
	return check
}

// luaInFile is the check in manifests/gitops.
func luaInFile(t testing.TB) luaCheck {
	t.Helper()
	text, err := os.ReadFile("../../manifests/gitops/argocd-cm.yaml")
	kit.Must(t, err)
	var patch struct{ Data map[string]string }
	kit.Must(t, yaml.UnmarshalStrict(text, &patch))
	return shippedLua(t, patch.Data)
}

// GetResourceHealth runs the script as Argo CD does: the object is the global obj, and
// the result a table.
func (c luaCheck) GetResourceHealth(object *unstructured.Unstructured) (*health.HealthStatus, error) {
	l := lua.NewState(lua.Options{SkipOpenLibs: !c.openLibs})
	defer l.Close()
	for name, open := range map[string]lua.LGFunction{
		lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable,
	} {
		if err := l.CallByParam(lua.P{Fn: l.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			return nil, err
		}
	}
	l.SetGlobal("obj", valueOf(l, object.Object))
	if err := l.DoString(c.script); err != nil {
		return nil, err
	}
	table, ok := l.Get(-1).(*lua.LTable)
	if !ok {
		return nil, errors.New("the script returns no table")
	}
	got := health.HealthStatus{Status: health.HealthStatusCode(textOf(table, "status")), Message: textOf(table, "message")}
	switch got.Status {
	case health.HealthStatusUnknown, health.HealthStatusProgressing, health.HealthStatusHealthy,
		health.HealthStatusSuspended, health.HealthStatusDegraded, health.HealthStatusMissing:
		return &got, nil
	}
	return nil, fmt.Errorf("%q is no health of Argo CD", got.Status)
}

func textOf(table *lua.LTable, key string) string {
	text, _ := table.RawGetString(key).(lua.LString)
	return string(text)
}

// valueOf returns a value of an object as one of Lua.
func valueOf(l *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case map[string]any:
		table := l.NewTable()
		for key, item := range value {
			table.RawSetString(key, valueOf(l, item))
		}
		return table
	case []any:
		table := l.NewTable()
		for _, item := range value {
			table.Append(valueOf(l, item))
		}
		return table
	case string:
		return lua.LString(value)
	case bool:
		return lua.LBool(value)
	case int64:
		return lua.LNumber(value)
	case float64:
		return lua.LNumber(value)
	}
	return lua.LNil
}

// argo is the engine of Argo CD on the hub.
type argo struct {
	write  kube.ResourceOperations
	differ map[string][]diff.Option
}

// newArgo makes the engine. Its differ has the options of the three ways to compare that
// Argo CD has, by name.
func newArgo(t *testing.T) argo {
	t.Helper()
	kubectl := &kube.KubectlCmd{Log: logr.Discard(), Tracer: tracing.NopTracer{}}
	write, done, err := kubectl.ManageResources(hub.RESTConfig())
	kit.Must(t, err)
	t.Cleanup(done)
	dry, dryDone, err := kubectl.ManageServerSideDiffDryRuns(hub.RESTConfig())
	kit.Must(t, err)
	t.Cleanup(dryDone)
	_, parser, err := kubectl.LoadOpenAPISchema(hub.RESTConfig())
	kit.Must(t, err)
	common := []diff.Option{diff.WithManager(argoManager), diff.WithGVKParser(parser), diff.WithLogr(logr.Discard())}
	return argo{write, map[string][]diff.Option{
		"three-way":        common,
		"structured merge": append(common[:3:3], diff.WithStructuredMergeDiff(true)),
		"server-side": append(common[:3:3], diff.WithServerSideDiff(true),
			diff.WithServerSideDryRunner(diff.NewK8sServerSideDryRunner(dry))),
	}}
}

// sync applies an object.
func (a argo) sync(t *testing.T, object *unstructured.Unstructured, serverSide bool) {
	t.Helper()
	_, err := a.write.ApplyResource(t.Context(), object.DeepCopy(), cmdutil.DryRunNone, false, false, serverSide, argoManager)
	kit.Must(t, err)
}

// difference returns what a comparison finds between the file and the live object, "" for none.
func (a argo) difference(t *testing.T, way string, file, live *unstructured.Unstructured) string {
	t.Helper()
	result, err := diff.Diff(file.DeepCopy(), live.DeepCopy(), a.differ[way]...)
	kit.Must(t, err)
	if !result.Modified {
		return ""
	}
	var wanted, is any
	kit.Must(t, errors.Join(json.Unmarshal(result.PredictedLive, &wanted), json.Unmarshal(result.NormalizedLive, &is)))
	return fmt.Sprintf("want %v\nlive %v", wanted, is)
}
