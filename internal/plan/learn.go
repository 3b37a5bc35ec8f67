package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	utiljson "k8s.io/apimachinery/pkg/util/json" // reads integers as such

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// formsKey is the field of an entry of status.learned with the forms in which the API server stores
// desired values. No object has a field with that name.
const formsKey = application.Prefix + "forms"

// complete refines the object with its entries in the documents.
func (o *Object) complete(app *application.Application) error {
	var err error
	entry := EntryOf(app.Learned, o.Manifest(), app.Namespace)
	if o.Forms, err = formsIn(entry); err != nil {
		return fmt.Errorf("read the forms of %s: %w", o.ID, err)
	}
	desired := o.Desired()
	if o.Types != nil && entry != nil { // with their keys, learned values stay with their elements
		desired = o.Mangled.Align(o.Types.Of(o.ID)).Retain(o.Manifest(), entry)
	}
	return o.pin(desired)
}

// formsIn reads the forms in an entry of status.learned.
func formsIn(entry map[string]any) (forms []schema.Form, err error) {
	if entry[formsKey] == nil {
		return nil, nil
	}
	text, err := json.Marshal(entry[formsKey])
	if err != nil {
		return nil, err
	}
	return forms, utiljson.Unmarshal(text, &forms)
}

// Learn learns observed values of the live object that were unknown before (step 6).
func (o *Object) Learn(live map[string]any) error {
	desired := o.Schema.LateInitialize(o.Desired(), WithoutMarks(live))
	if reflect.DeepEqual(desired, o.Desired()) {
		return nil
	}
	return o.pin(desired)
}

// Accept records the forms in which the API server stores desired values, from its answer to a
// write of the agent. It considers all sent values: all except those of unsent and, if sent is not
// nil, only those of sent.
func (o *Object) Accept(answer map[string]any, sent, unsent schema.Differences) error {
	answer = WithoutMarks(answer)
	changed := o.forgetDropped(answer, unsent)
	for _, form := range o.Schema.Forms(o.Desired(), answer) {
		if !IsAmong(unsent, form.Path) && (sent == nil || IsAmong(sent, form.Path)) {
			o.Forms, changed = withForm(o.Forms, form), true
		}
	}
	if !changed {
		return nil
	}
	return o.pin(o.Desired())
}

// manyForms bounds the forms of one value. A webhook that never writes the same value twice would
// fill the ConfigMap.
const manyForms = 8

// withForm adds a form. If there are many of the same value, it replaces the oldest.
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

// forgetDropped forgets learned values that the API server dropped, and reports whether there was
// one. An example is the node port of a Service that became a ClusterIP. A value that was not sent
// was removed by another manager.
func (o *Object) forgetDropped(answer map[string]any, unsent schema.Differences) (some bool) {
	for _, form := range o.Schema.Forms(o.Desired(), answer) {
		if form.Have != nil || IsAmong(unsent, form.Path) {
			continue
		}
		forgotten, _ := o.Schema.Forget(o.Desired(), o.Manifest(), answer, form.Path.Names()...)
		o.desired = treeOf(forgotten)
		o.HasForgotten, some = true, true
	}
	return some
}

// ForgetRefused forgets the learned values at a field that the API server refused in a write to the
// live object. It reports whether there were any. A refused field does not imply that the server
// refuses each learned value below it.
func (o *Object) ForgetRefused(live map[string]any, field []string) (some bool, err error) {
	forgotten, removals := o.Schema.Forget(o.Desired(), o.Manifest(), live, field...)
	isBelow := func(d schema.Difference) bool { return len(d.Path.Names()) > len(field) }
	if len(removals) == 0 || slices.ContainsFunc(removals, isBelow) {
		return false, nil
	}
	o.HasForgotten = true
	return true, o.pin(forgotten)
}

// ForgetLearned forgets all learned values. It reports whether there were any.
func (o *Object) ForgetLearned() (some bool, err error) {
	if o.Schema.Learned(o.Desired(), o.Manifest()) == nil {
		return false, nil
	}
	o.HasForgotten = true
	return true, o.pin(o.Manifest())
}

// Learned returns the entry of status.learned with all values beyond the manifest, or nil if there
// are none.
func (o *Object) Learned() map[string]any {
	learned := o.Schema.Learned(o.Desired(), o.Manifest())
	if o.Types != nil { // which may be unknown to the next agent
		learned = o.Schema.LearnedInPlace(o.Desired(), o.Manifest())
	}
	if len(o.Forms) == 0 {
		return learned
	}
	if learned == nil {
		learned = map[string]any{"apiVersion": o.Desired()["apiVersion"], "kind": o.Desired()["kind"], "metadata": identityOf(o.Manifest())}
	}
	learned[formsKey] = o.Forms
	return learned
}

// WithForms returns a former entry of status.learned with the present forms.
func (o *Object) WithForms(former map[string]any) map[string]any {
	learned := maps.Clone(former)
	delete(learned, formsKey)
	if len(o.Forms) > 0 {
		learned[formsKey] = o.Forms
	}
	return learned
}

// identityOf returns the name of a resource, and its namespace if it has one.
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
