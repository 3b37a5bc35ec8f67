package habitat

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// A process keeps the peer that it has chosen, or found at its start. If a user writes the
// address of another Pod into the file, it is reset. A deleted file is created with the same
// address.
func TestAChoiceIsKept(t *testing.T) {
	const one, other = "10.0.0.1", "10.0.0.2"
	w := carried(t, "greeter", greeter)
	w.have(pod("greeter-0", "greeter", one))
	w.have(pod("greeter-1", "greeter", other))
	write := func(address string) {
		edit(w, &corev1.ConfigMap{}, peerFile, func(cm *corev1.ConfigMap) { cm.Data = map[string]string{peerFile: address} })
		w.see()
	}
	write(other) // of a former process
	p := &peers{shared: w.shared}
	has := func(want string) {
		t.Helper()
		w.must(p.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: shop}}))
		if got := must(t, &corev1.ConfigMap{}, w, peerFile).Data[peerFile]; got != want {
			t.Errorf("the peer file has %q, want %q", got, want)
		}
		w.see()
	}
	has(other)
	write(one)
	has(other)
	write("")
	has(other)
	w.gone(&corev1.Pod{}, "greeter-1")
	w.see()
	has(one)
	write(other)
	has(one)
}
