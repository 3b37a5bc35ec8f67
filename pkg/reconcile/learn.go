package reconcile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	utiljson "k8s.io/apimachinery/pkg/util/json" // reads integers as such

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// formsKey is where an entry of the document status.learned keeps how the API
// server writes desired values. No object has a field of that name.
const formsKey = application.Prefix + "forms"

// learn takes over from the live object what was not known yet (step 6).
func (p *resource) learn(live map[string]any) error {
	desired := p.Schema.LateInitialize(p.desired(), withoutMarks(live))
	if reflect.DeepEqual(desired, p.desired()) {
		return nil
	}
	return p.pin(desired)
}

// accept takes it for the API server's way to write the desired values down what
// it answers to a write of ours: of the values that were sent, which is all but
// those left, and if sent is given, those alone.
func (p *resource) accept(answer map[string]any, sent, left schema.Differences) error {
	answer = withoutMarks(answer)
	news := p.forgetDropped(answer, left)
	for _, form := range p.Schema.Forms(p.desired(), answer) {
		if !isAmong(left, form.Path) && (sent == nil || isAmong(sent, form.Path)) {
			p.forms, news = withForm(p.forms, form), true
		}
	}
	if !news {
		return nil
	}
	return p.pin(p.desired())
}

// isAmong tells if a path is that of one of the differences, or below it. The
// indices of one are those of the desired elements, of the other those of the live
// ones: without them some more are.
func isAmong(differences schema.Differences, path schema.Path) bool {
	fields := fieldsOf(path)
	return slices.ContainsFunc(differences, func(d schema.Difference) bool {
		above := fieldsOf(d.Path)
		return len(above) <= len(fields) && slices.Equal(above, fields[:len(above)])
	})
}

// fieldsOf gives the names of the fields on the way of a path.
func fieldsOf(path schema.Path) []string {
	var fields []string
	for _, step := range path {
		if step.Field != "" {
			fields = append(fields, step.Field)
		}
	}
	return fields
}

// manyForms is how many ways to write one value are remembered: of a webhook that
// never writes the same again, they would fill the ConfigMap.
const manyForms = 8

// withForm adds a form, in the place of the oldest of the same value if there are
// many.
func withForm(forms []schema.Form, form schema.Form) []schema.Form {
	count, oldest := 0, -1
	for i, known := range forms {
		if !slices.Equal(known.Path, form.Path) {
			continue
		}
		if count++; oldest < 0 {
			oldest = i
		}
	}
	if count >= manyForms {
		forms = slices.Delete(slices.Clone(forms), oldest, oldest+1)
	}
	return append(forms, form)
}

// forgetDropped forgets what was learned and the API server does not have any
// more: the node port of a Service that has become a ClusterIP. What was not
// sent, somebody else has taken away. It tells if there was such a value.
func (p *resource) forgetDropped(answer map[string]any, unsent schema.Differences) (some bool) {
	for _, form := range p.Schema.Forms(p.desired(), answer) {
		if form.Have != nil || isAmong(unsent, form.Path) {
			continue
		}
		forgotten, _ := p.Schema.Forget(p.desired(), p.manifest(), answer, fieldsOf(form.Path)...)
		p.wanted = treeOf(forgotten)
		p.forgot, some = true, true
	}
	return some
}

// learned is what is known beyond the manifest.
func (p *resource) learned() map[string]any {
	learned := p.Schema.Learned(p.desired(), p.manifest())
	if len(p.forms) == 0 {
		return learned
	}
	if learned == nil {
		learned = map[string]any{"apiVersion": p.desired()["apiVersion"], "kind": p.desired()["kind"], "metadata": identityOf(p.manifest())}
	}
	learned[formsKey] = p.forms
	return learned
}

// withForms gives what was learned formerly, with the forms that are known now.
func (p *resource) withForms(learned map[string]any) map[string]any {
	learned = maps.Clone(learned)
	delete(learned, formsKey)
	if len(p.forms) > 0 {
		learned[formsKey] = p.forms
	}
	return learned
}

// identityOf gives the name of a resource, and its namespace if it says it.
func identityOf(resource map[string]any) map[string]any {
	identity := map[string]any{}
	metadata, _ := resource["metadata"].(map[string]any)
	for _, name := range []string{"name", "namespace"} {
		if value, ok := metadata[name]; ok {
			identity[name] = value
		}
	}
	return identity
}

// remember reads what was learned of the forms of the resource.
func (p *resource) remember(learned []map[string]any, home string) error {
	entry := entryOf(learned, p.manifest(), home)
	if entry[formsKey] == nil {
		return nil
	}
	text, err := json.Marshal(entry[formsKey])
	if err != nil {
		return fmt.Errorf("read the forms of %s: %w", p.ID, err)
	}
	if err := utiljson.Unmarshal(text, &p.forms); err != nil {
		return fmt.Errorf("read the forms of %s: %w", p.ID, err)
	}
	return nil
}

// entryOf gives the entry of a resource in one of the documents, nil if it has
// none, or if it cannot be told from that of another one. Home is the namespace
// of what says none.
func entryOf(document []map[string]any, resource map[string]any, home string) map[string]any {
	self, err := manifest.Identify(resource)
	if err != nil {
		return nil
	}
	var found map[string]any
	for _, entry := range document {
		id, err := manifest.Identify(entry)
		switch {
		case err != nil || !same(id, self, home):
		case found != nil:
			return nil
		default:
			found = entry
		}
	}
	return found
}

// same compares identities in documents, where a namespace may be missing.
func same(a, b manifest.ID, home string) bool {
	a.Namespace, b.Namespace = cmp.Or(a.Namespace, home), cmp.Or(b.Namespace, home)
	return a == b
}
