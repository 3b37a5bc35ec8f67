package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krake-observer/krake-observer/internal/apierror"
	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
)

// planPhase computes each desired object, and locates it on the target.
type planPhase struct {
	kinds        Kinds
	secrets      Secrets
	statusWriter statusWriter
	maxHold      time.Duration
	fieldManager string
}

func (s planPhase) run(ctx context.Context, p *pass) (progress, error) {
	planned, err := s.plan(p)
	switch {
	case apierror.IsUnanswered(err):
		return endWith(0), s.statusWriter.loseTarget(ctx, p.early(), p.memory, err)
	case err != nil:
		return endWith(0), s.statusWriter.refuse(ctx, p.early(), p.memory, err)
	}
	p.inputs = s.inputsOf(p)
	if p.memory.spec != p.spec {
		p.memory.resetBackoffs() // with a new spec, a contended field may be unobserved
	}
	wanted := p.memory.plan.Secrets()
	for i := range planned {
		id := planned[i].ID
		o := &object{inputs: p.inputs, memory: p.memory.about(id), plan: planned[i]}
		if hook := i - (len(planned) - len(wanted)); hook >= 0 {
			p.secrets = append(p.secrets, &hookSecret{o, wanted[hook]})
			continue
		}
		o.former, o.isKnown = p.app.Status.Object(id)
		if o.sources, err = sourcesFor(p.app, p.target.account, &o.plan); err != nil {
			return endWith(0), s.statusWriter.refuse(ctx, p.early(), p.memory, err)
		}
		o.redefinitions = s.kinds.Redefinitions(id.GroupVersionKind().Group)
		p.objects = append(p.objects, o)
	}
	return goOn(), nil
}

// settingOf returns the common inputs for the objects of the pass.
func (s planPhase) inputsOf(p *pass) *inputs {
	former := p.app.Status.ObservedSpec
	isNew := former != p.spec
	return &inputs{
		now: s.statusWriter.hub.now(), enforces: p.app.Settings.Mode == application.Enforce, settings: p.app.Settings,
		isNewSpec: isNew, mayHaveMissed: isNew && (former != p.memory.spec || p.memory.spec == ""),
		maxHold: s.maxHold, fieldManager: s.fieldManager, annotations: p.app.Annotations,
		lastObserved: p.app.LastObserved, learned: p.app.Learned, home: p.app.Namespace,
	}
}

// plan returns the located objects, with the Secrets of the hooks last. It uses the cached plan if
// its inputs are unchanged.
func (s planPhase) plan(p *pass) ([]plan.Object, error) {
	wanted, err := p.memory.plan.Of(p.app)
	switch {
	case err != nil:
		return nil, err
	case len(wanted.Secrets()) > 0 && s.secrets == nil:
		return nil, errNoHooks
	}
	if mangled := wanted.Mangled(); mangled != nil {
		p.app.Mangled = mangled
	}
	objects := wanted.Drafts()
	if err := s.locate(p.app, objects); err != nil {
		return nil, err
	}
	if err := wanted.Complete(p.app, objects); err != nil {
		return nil, err
	}
	p.memory.plan = wanted
	return objects, nil
}

// locate finds where the target serves the objects, and checks whether they may be there. A kind
// that is not served does not delay the others.
func (s planPhase) locate(app *application.Application, objects []plan.Object) error {
	var served []*plan.Object
	var found []mutate.Object
	for i := range objects {
		at, err := s.kinds.Locate(app.NamespacedName, objects[i].ID)
		if err != nil {
			err = fmt.Errorf("cannot find the resource of %s: %w", objects[i].ID, err)
		}
		if apierror.IsUnanswered(err) {
			return err
		}
		if err != nil {
			if meta.IsNoMatchError(err) {
				if name := definitionOf(objects[i].ID, objects); name != "" {
					err = notEstablishedError{name}
				}
			}
			objects[i].Unserved = err
			continue
		}
		objects[i].Types = s.kinds.Types(app.NamespacedName, objects[i].ID)
		served, found = append(served, &objects[i]), append(found, at)
	}
	refs, err := s.statusWriter.placement.confine(app, found)
	if err != nil {
		return err
	}
	for i, ref := range refs {
		served[i].Ref = ref
	}
	return nil
}

// definitionOf returns the name of the definition among the objects that makes the target serve an object's kind and version, or "".
func definitionOf(id manifest.ID, objects []plan.Object) string {
	wanted := id.GroupVersionKind()
	for i := range objects {
		if !objects[i].IsDefinition() || !strings.HasSuffix(objects[i].Name, "."+wanted.Group) {
			continue // its name ends with its group, so no large manifest of another one is unpacked
		}
		spec, _ := objects[i].Manifest()["spec"].(map[string]any)
		kind, _, _ := unstructured.NestedString(spec, "names", "kind")
		versions, _ := spec["versions"].([]any)
		serves := func(version any) bool {
			of, _ := version.(map[string]any)
			return of["name"] == wanted.Version && of["served"] == true
		}
		if spec["group"] == wanted.Group && kind == wanted.Kind && slices.ContainsFunc(versions, serves) {
			return objects[i].Name
		}
	}
	return ""
}
