package status_test

import (
	"testing"

	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
)

// A deletion has no fields.
func TestABrokenGlassNamesTheUserAndTheRequest(t *testing.T) {
	outcome := status.Outcome{
		Action: status.GlassBroken, Reason: "carol", Object: manifest.ID{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"},
	}
	check.Equal(t, "deletion", "GlassBroken apps/v1 Deployment shop/web, deleted by carol, a user who breaks the glass", outcome.String())
	outcome.Paths = []schema.Path{{{Field: "spec", Index: -1}, {Field: "replicas", Index: -1}}}
	check.Equal(t, "change", "GlassBroken apps/v1 Deployment shop/web: spec.replicas, changed by carol, a user who breaks the glass", outcome.String())
}
