package guard

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// BenchmarkHandle answers the review of a change, from body to body, with the plan in the cache. The
// manifest has 10 KiB.
func BenchmarkHandle(b *testing.B) {
	w := newWorld(b, kit.Manifest(10<<10))
	w.app.Wishes.Guard = application.GuardDeny
	body := bodyOf(b, w.update(b, w.edited(b, true, "automountServiceAccountToken")))
	webhook := &admission.Webhook{Handler: w.handler}
	b.ReportAllocs()
	for b.Loop() {
		if answerTo(b, webhook, body).Allowed {
			b.Fatal("the change is allowed")
		}
	}
}
