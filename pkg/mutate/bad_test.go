package mutate_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/test/check"
)

// mostAllocated is what the computation for one input may allocate.
const mostAllocated = 128 << 20

// marker stands for a value that must not be published.
const marker = "hunter2"

// badInput is a case of testdata/bad. The request is the Application demo/web with manifest
// and observer schema, changed by the merge patch Request. With Stored it is an update. The
// stored Application is the same one with a ConfigMap in its manifest, after admission,
// changed by the merge patch Stored.
//
// With Each, every one of its values makes a case. $each is replaced by the value. If the
// values are objects, $name is replaced by the value of the key "name".
type badInput struct {
	Why            string          `json:"why"`
	Each           []any           `json:"each,omitempty"`
	Manifest       *parts          `json:"manifest,omitempty"`
	ObserverSchema *parts          `json:"observer_schema,omitempty"`
	Request        json.RawMessage `json:"request,omitempty"`
	Stored         json.RawMessage `json:"stored,omitempty"`
	Scope          mutate.Scope    `json:"scope,omitempty"`
	// Causes are all refusals, in their order, each with a part of its detail:
	// "data.spec.manifest[0].kind: Invalid value: a List is not supported".
	Causes []string `json:"causes,omitempty"`
	// Accepted is set if there are no refusals. Warnings then has a part of each warning.
	Accepted bool     `json:"accepted,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// parts is a text, or a list with elements of three kinds: texts, {repeat: [text, times]},
// where %d is the number of the repetition, and {hex: bytes}.
type parts string

func (p *parts) UnmarshalJSON(text []byte) error {
	var whole string
	if json.Unmarshal(text, &whole) == nil {
		*p = parts(whole)
		return nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	var b strings.Builder
	for _, raw := range list {
		if err := writePart(&b, raw); err != nil {
			return fmt.Errorf("part %s: %w", raw, err)
		}
	}
	*p = parts(b.String())
	return nil
}

func writePart(b *strings.Builder, raw []byte) error {
	var whole string
	if json.Unmarshal(raw, &whole) == nil {
		b.WriteString(whole)
		return nil
	}
	var part struct {
		Repeat []any  `json:"repeat"`
		Hex    string `json:"hex"`
	}
	if err := json.Unmarshal(raw, &part); err != nil {
		return err
	}
	if len(part.Repeat) == 2 {
		text, _ := part.Repeat[0].(string)
		times, _ := part.Repeat[1].(float64)
		for i := range int(times) {
			b.WriteString(strings.ReplaceAll(text, "%d", fmt.Sprint(i)))
		}
	}
	decoded, err := hex.DecodeString(part.Hex)
	b.Write(decoded)
	return err
}

// badInputs reads a file of testdata/bad.
func badInputs(t testing.TB, file string) []badInput {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "bad", file))
	check.Must(t, err)
	var inputs []badInput
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return inputs
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		asJSON, err := yaml.YAMLToJSONStrict(document)
		if err != nil {
			t.Fatalf("%s: %v in\n%s", file, err, document)
		}
		for _, one := range expanded(t, asJSON) {
			var input badInput
			decoder := json.NewDecoder(bytes.NewReader(one))
			decoder.DisallowUnknownFields()
			if err := decoder.Decode(&input); err != nil {
				t.Fatalf("%s: %v in\n%s", file, err, document)
			}
			if input.Accepted == (len(input.Causes) > 0) {
				t.Fatalf("%s: %q is neither accepted nor refused, or both", file, input.Why)
			}
			inputs = append(inputs, input)
		}
	}
}

// expanded returns a case for each value of its Each.
func expanded(t testing.TB, document []byte) [][]byte {
	t.Helper()
	var of struct{ Each []any }
	if err := json.Unmarshal(document, &of); err != nil {
		t.Fatalf("%v in\n%s", err, document)
	}
	if len(of.Each) == 0 {
		return [][]byte{document}
	}
	var all [][]byte
	for _, value := range of.Each {
		values, named := value.(map[string]any)
		if !named {
			values = map[string]any{"each": value}
		}
		one := document
		for name, value := range values {
			quoted, err := json.Marshal(fmt.Sprint(value))
			check.Must(t, err)
			one = bytes.ReplaceAll(one, []byte("$"+name), quoted[1:len(quoted)-1])
		}
		all = append(all, one)
	}
	return all
}

const storedManifest = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: b}}\n"

// request returns the user's ConfigMap, and the stored one if it is an update.
func (b badInput) request(t testing.TB) (cm, stored *corev1.ConfigMap) {
	t.Helper()
	cm = submitted()
	cm.Labels, cm.Finalizers = nil, nil
	cm.Data = map[string]string{"spec.manifest": storedManifest}
	if b.Stored != nil {
		check.Must(t, mutate.PrepareForCreate(t.Context().Err, cm).Refusals.ToAggregate())
		cm.UID, cm.ResourceVersion = "u1", "7"
		stored = merged(t, cm, b.Stored)
		cm = stored.DeepCopy()
	}
	cm = merged(t, cm, b.Request)
	// These texts bypass the merge patch, which would change invalid UTF-8.
	for key, text := range map[string]*parts{"spec.manifest": b.Manifest, "spec.observer_schema": b.ObserverSchema} {
		if text != nil {
			cm.Data[key] = string(*text)
		}
	}
	return cm, stored
}

func merged(t testing.TB, cm *corev1.ConfigMap, patch []byte) *corev1.ConfigMap {
	t.Helper()
	if len(patch) == 0 {
		return cm
	}
	text, err := json.Marshal(cm)
	check.Must(t, err)
	text, err = jsonpatch.MergePatch(text, patch)
	check.Must(t, err)
	var after corev1.ConfigMap
	check.Must(t, json.Unmarshal(text, &after))
	return &after
}

// verdict is the result of an input.
type verdict struct {
	refusals field.ErrorList
	warnings []string
	// cm is the completed ConfigMap.
	cm *corev1.ConfigMap
	// allocated are the bytes that the computation has allocated.
	allocated uint64
}

// judge computes the result of admission without an API server.
func judge(cm, stored *corev1.ConfigMap, scope mutate.Scope) verdict {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	prepared := prepare(cm, stored)
	_, unreachable := scope.Confine(mutate.Home{Hub: cm.Namespace, Target: cm.Namespace}, objects(prepared.Wanted))
	runtime.ReadMemStats(&after)
	return verdict{
		refusals:  append(prepared.Refusals, unreachable...),
		warnings:  prepared.Warnings,
		cm:        cm,
		allocated: after.TotalAlloc - before.TotalAlloc,
	}
}

func prepare(cm, stored *corev1.ConfigMap) mutate.Prepared {
	if stored == nil {
		return mutate.PrepareForCreate(context.Background().Err, cm)
	}
	return mutate.PrepareForUpdate(context.Background().Err, cm, stored, true)
}

// objects locates identities as an API server with a few kinds does. Like the webhook, it
// takes other kinds for namespaced ones of a guessed resource.
func objects(ids []manifest.ID) []mutate.Object {
	located := make([]mutate.Object, 0, len(ids))
	for _, id := range ids {
		gvk := id.GroupVersionKind()
		resource := strings.ToLower(gvk.Kind) + "s"
		if kind, ok := renamed[gvk.GroupKind()]; ok {
			gvk.Group, resource = kind.Group, kind.Resource
		}
		located = append(located, mutate.Object{
			Ref:           manifest.Ref{ID: id, Resource: gvk.GroupVersion().WithResource(resource)},
			ClusterScoped: clusterScoped[gvk.Kind],
		})
	}
	return located
}

// clusterScoped are the kinds without a namespace. renamed are those that a server serves in
// two groups, of which it stores one.
var (
	clusterScoped = map[string]bool{
		"Namespace": true, "Node": true, "PersistentVolume": true, "ClusterRole": true, "ClusterRoleBinding": true,
		"CustomResourceDefinition": true, "StorageClass": true, "PriorityClass": true, "APIService": true, "CSIDriver": true,
		"MutatingWebhookConfiguration": true, "ValidatingWebhookConfiguration": true, "ValidatingAdmissionPolicy": true,
		"IngressClass": true, "RuntimeClass": true, "VolumeAttachment": true, "CertificateSigningRequest": true, "FlowSchema": true,
	}
	renamed = map[apischema.GroupKind]apischema.GroupResource{
		{Group: "extensions", Kind: "Deployment"}: {Group: "apps", Resource: "deployments"},
		{Group: "extensions", Kind: "Ingress"}:    {Group: "networking.k8s.io", Resource: "ingresss"},
		{Group: "", Kind: "Event"}:                {Group: "events.k8s.io", Resource: "events"},
	}
)

// check compares the verdict with the case.
func (b badInput) check(t *testing.T, got verdict) {
	t.Helper()
	problem := differences("causes", b.Causes, texts(got.refusals), sameCause)
	if b.Accepted {
		problem += differences("warnings", b.Warnings, got.warnings, strings.Contains)
	}
	if problem != "" {
		t.Error(problem)
	}
	for _, told := range append(texts(got.refusals), got.warnings...) {
		if strings.Contains(told, marker) {
			t.Errorf("a value is repeated: %s", told)
		}
	}
	if got.allocated > mostAllocated {
		t.Errorf("it allocates %d MiB", got.allocated>>20)
	}
}

func texts(refusals field.ErrorList) []string {
	var texts []string
	for _, refusal := range refusals {
		texts = append(texts, refusal.Error())
	}
	return texts
}

func differences(what string, want, got []string, same func(got, want string) bool) string {
	ok := len(want) == len(got)
	for i := range min(len(want), len(got)) {
		ok = ok && same(got[i], want[i])
	}
	if ok {
		return ""
	}
	return fmt.Sprintf("%s: got\n  %s\nwant\n  %s\n", what, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
}

// sameCause reports whether place and type are equal, and the detail contains the wanted text.
func sameCause(got, want string) bool {
	for _, kind := range []string{": Invalid value: ", ": Forbidden: ", ": Required value: ", ": Unsupported value: "} {
		if place, part, ok := strings.Cut(want, kind); ok {
			gotPlace, detail, ok := strings.Cut(got, kind)
			return ok && place == gotPlace && part != "" && strings.Contains(detail, part)
		}
	}
	return false
}

// judgeFile judges the cases of a file and returns their number.
func judgeFile(t *testing.T, file string) int {
	t.Helper()
	inputs := badInputs(t, file)
	for _, input := range inputs {
		t.Run(input.Why, func(t *testing.T) { input.check(t, input.judge(t)) })
	}
	return len(inputs)
}

func (b badInput) judge(t testing.TB) verdict {
	t.Helper()
	cm, stored := b.request(t)
	return judge(cm, stored, b.Scope)
}

// badFiles returns the files of testdata/bad.
func badFiles(t testing.TB) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "bad", "*.yaml"))
	check.Must(t, err)
	for i := range paths {
		paths[i] = filepath.Base(paths[i])
	}
	return paths
}

// The refused inputs, with the texts of the refusals, and inputs that look bad but are legal.
func TestBadInputs(t *testing.T) {
	count := 0
	for _, file := range badFiles(t) {
		t.Run(strings.TrimSuffix(file, ".yaml"), func(t *testing.T) { count += judgeFile(t, file) })
	}
	if count < 300 && !t.Failed() {
		t.Errorf("there are only %d inputs", count)
	}
}
