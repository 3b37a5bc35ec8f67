package reconcile

import (
	"encoding/json"
	"fmt"
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
	return p.pin(p.Schema.LateInitialize(p.desired, withoutMarks(live)))
}

// accept takes it for the API server's way to write the desired values down what
// it answers to a write of ours, but for what was written so before, if that is given.
func (p *resource) accept(answer, before map[string]any) error {
	answer = withoutMarks(answer)
	p.forgetDropped(answer)
	var former []schema.Form
	if before != nil {
		former = p.Schema.Forms(p.desired, withoutMarks(before))
	}
	for _, form := range p.Schema.Forms(p.desired, answer) {
		if !slices.ContainsFunc(former, func(f schema.Form) bool { return slices.Equal(f.Path, form.Path) }) {
			p.forms = append(p.forms, form)
		}
	}
	return p.pin(p.desired)
}

// forgetDropped forgets what was learned and the API server does not have any
// more: the node port of a Service that has become a ClusterIP.
func (p *resource) forgetDropped(answer map[string]any) {
	for _, form := range p.Schema.Forms(p.desired, answer) {
		if form.Have != nil {
			continue
		}
		var field []string
		for _, step := range form.Path {
			if step.Field != "" {
				field = append(field, step.Field)
			}
		}
		p.desired, _ = p.Schema.Forget(p.desired, p.manifest, answer, field...)
		p.forgot = true
	}
}

// learned is what is known beyond the manifest.
func (p *resource) learned() map[string]any {
	learned := p.Schema.Learned(p.desired, p.manifest)
	if len(p.forms) == 0 {
		return learned
	}
	if learned == nil {
		learned = map[string]any{"apiVersion": p.desired["apiVersion"], "kind": p.desired["kind"], "metadata": identityOf(p.manifest)}
	}
	learned[formsKey] = p.forms
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
func (p *resource) remember(learned []map[string]any) error {
	entry := entryOf(learned, p.manifest)
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
// none, or if it cannot be told from that of another one.
func entryOf(document []map[string]any, resource map[string]any) map[string]any {
	self, err := manifest.Identify(resource)
	if err != nil {
		return nil
	}
	var found map[string]any
	for _, entry := range document {
		id, err := manifest.Identify(entry)
		switch {
		case err != nil || !same(id, self):
		case found != nil:
			return nil
		default:
			found = entry
		}
	}
	return found
}

// same compares identities in documents, where a namespace may be missing.
func same(a, b manifest.ID) bool {
	return a.APIVersion == b.APIVersion && a.Kind == b.Kind && a.Name == b.Name &&
		(a.Namespace == b.Namespace || a.Namespace == "" || b.Namespace == "")
}
