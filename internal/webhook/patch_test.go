package webhook

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/krake-observer/krake-observer/test/check"
)

// For any change by the webhook, the patch leads to its result.
func TestDifference(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 1000 {
		before, after := randomConfigMap(random), randomConfigMap(random)
		response := difference(before, after)
		check.Must(t, response.Complete(admission.Request{}))
		object, want := marshalled(t, before), marshalled(t, after)
		var got corev1.ConfigMap // without empty fields
		check.Must(t, json.Unmarshal(patched(t, object, &response.AdmissionResponse), &got))
		if diff := cmp.Diff(decoded(t, want), decoded(t, marshalled(t, &got))); diff != "" {
			t.Fatalf("from %s by %s (-want +got):\n%s", object, response.Patch, diff)
		}
	}
}

func randomConfigMap(random *rand.Rand) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "app"}}
	some := func(do func(key, value string)) {
		for _, key := range []string{"a", "b/c", "d~e", "~1"} {
			if random.IntN(2) == 0 {
				do(key, fmt.Sprint(random.IntN(2)))
			}
		}
	}
	cm.Labels, cm.Data, cm.BinaryData = map[string]string{}, map[string]string{}, map[string][]byte{}
	some(func(key, value string) { cm.Labels[key] = value })
	some(func(key, value string) { cm.Data[key] = value })
	some(func(key, value string) { cm.BinaryData[key] = []byte(value) })
	some(func(key, _ string) { cm.Finalizers = append(cm.Finalizers, key) })
	return cm
}

func marshalled(t *testing.T, cm *corev1.ConfigMap) []byte {
	t.Helper()
	text, err := json.Marshal(cm)
	check.Must(t, err)
	return text
}

// A change that the patch cannot express is an error.
func TestDifferenceBeyond(t *testing.T) {
	before := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "app"}}
	for name, change := range map[string]func(*corev1.ConfigMap){
		"annotations": func(cm *corev1.ConfigMap) { cm.Annotations = map[string]string{"a": "b"} },
		"owners":      func(cm *corev1.ConfigMap) { cm.OwnerReferences = []metav1.OwnerReference{{Name: "a"}} },
		"immutable":   func(cm *corev1.ConfigMap) { cm.Immutable = new(true) },
	} {
		after := before.DeepCopy()
		change(after)
		check.Equal(t, name+": allowed", false, difference(before, after).Allowed)
	}
}
