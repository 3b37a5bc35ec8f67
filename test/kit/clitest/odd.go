package clitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/pkg/application"
)

// oddities are texts that no user would write on purpose.
var oddities = []string{
	"", " ", "null", "[]", "{}", "0", "-1", `"x"`, "{", "[{}]", "[null]", `[[]]`, `{"a":null}`, "\x00\xff", "\x1b[2J", "---\n---\n", "kind: x", "- a\n- b", "true",
	strings.Repeat("[", 100), strings.Repeat("x", 100_000), "!!binary x", "&a [*a]", "99999999999999999999999", "2026-13-45T00:00:00Z", "a/b/c/d", "Habitat/", "complete,,shutdown", "\u202e",
}

// oddStatuses are statuses with meaningless values.
var oddStatuses = []string{
	`{"state":"x","conditions":[{}],"objects":[{}],"drifts":[{}],"services":{"":""},"containerHealth":{}}`,
	`{"objects":[{"kind":"Deployment","hold":{}},{"hold":{"until":"9999-12-31T23:59:59Z","asked":"x","since":null}}]}`,
	`{"drifts":[{"count":-5,"after":"-1h","fields":[{"path":"","want":{"a":[1]},"have":[null]},{}]},{"object":null,"seen":"0001-01-01T00:00:00Z","repaired":"x"}]}`,
	`{"conditions":[{"type":"Ready","status":"Maybe","lastTransitionTime":null},{"type":"Ready","status":"True"},{"type":"Drifted","status":"True"}]}`,
	`{"cluster":"../..","target":"x","awaiting":"x","observedSpec":"x","state":"RUNNING"}`,
	`{"state":"RUNNING","conditions":[{"type":"Drifted","status":"True","reason":"\u001b[2J","message":"\u202e"}],"objects":[{"name":"\u001b]0;x\u0007","fields":["\t"]}]}`,
}

// oddApplications returns ConfigMaps with the annotation of an Application, each with another
// oddity.
func oddApplications(t *testing.T) map[string]*corev1.ConfigMap {
	t.Helper()
	found := map[string]*corev1.ConfigMap{"nothing": {ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{application.FormatAnnotation: application.Format}}}}
	add := func(why string, change func(cm *corev1.ConfigMap)) {
		cm := WebApp(t)
		if cm.BinaryData == nil {
			cm.BinaryData = map[string][]byte{}
		}
		change(cm)
		found[why] = cm
	}
	keys := append(application.SpecKeys(), application.StatusKey, application.LearnedKey, application.InventoryKey(application.LocalCluster))
	keys = append(keys, slices.Collect(maps.Keys(WebApp(t).Data))...)
	annotations := []string{
		application.FormatAnnotation, application.ClusterAnnotation, application.ModeAnnotation, application.HooksAnnotation, application.HoldUntilAnnotation,
		application.ForceDeleteAnnotation, application.GeneratedFromAnnotation, application.DeletionPolicyAnnotation,
	}
	for i, odd := range oddities {
		for _, key := range keys {
			add(fmt.Sprintf("data %s, %d", key, i), func(cm *corev1.ConfigMap) { cm.Data[key] = odd })
			add(fmt.Sprintf("binary data %s, %d", key, i), func(cm *corev1.ConfigMap) { delete(cm.Data, key); cm.BinaryData[key] = []byte(odd) })
		}
		for _, name := range annotations {
			add(fmt.Sprintf("annotation %s, %d", name, i), func(cm *corev1.ConfigMap) { cm.Annotations[name] = odd })
		}
	}
	for i, odd := range oddStatuses {
		add(fmt.Sprintf("status %d", i), func(cm *corev1.ConfigMap) { cm.Data[application.StatusKey] = odd })
	}
	add("labels and finalizers", func(cm *corev1.ConfigMap) {
		cm.Labels, cm.Finalizers, cm.DeletionTimestamp = map[string]string{"holder.krake.dev/": "", "krake.dev/cluster": "x"}, []string{"", ".krake.dev/resources", "x"}, &metav1.Time{}
	})
	return found
}

// CheckOdd shows odd Applications. For any ConfigMap, show prints something, and no control sequence reaches the
// terminal.
func CheckOdd(t *testing.T, show func(e *env.Environment, cm *corev1.ConfigMap) error) {
	t.Helper()
	odd := oddApplications(t)
	for why, cm := range odd {
		var out bytes.Buffer
		e := &env.Environment{IOStreams: genericiooptions.IOStreams{Out: &out, ErrOut: io.Discard}, Now: func() time.Time { return Noon }}
		before, _ := json.Marshal(cm)
		if err := show(e, cm); err != nil {
			t.Errorf("%s: %v", why, err)
		}
		if text := out.String(); text == "" || strings.ContainsAny(strings.ReplaceAll(text, "\t", ""), "\x1b\a\x00\u202e") {
			t.Errorf("%s: %.300q", why, text)
		}
		if after, _ := json.Marshal(cm); !bytes.Equal(before, after) {
			t.Errorf("%s: what was read was changed", why)
		}
	}
	t.Logf("%d ConfigMaps", len(odd))
	if len(odd) < 500 {
		t.Errorf("%d are too few to show anything", len(odd))
	}
}
