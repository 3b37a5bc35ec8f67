package status

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/internal/pacing"
	"github.com/krake-observer/krake-observer/pkg/application"
)

// UrgencyOf returns how soon people must see a working copy instead of the published status. A
// rollout changes the texts of a status with each Pod, and each write transfers the whole ConfigMap
// to the hub.
func UrgencyOf(published, next *application.Application) pacing.Urgency {
	switch {
	case isNews(published, next):
		return pacing.Urgent
	case !equality.Semantic.DeepEqual(published.Status.Drifts, next.Status.Drifts),
		isReplaced(published.LastApplied, next.LastApplied), isReplaced(published.LastObserved, next.LastObserved):
		return pacing.Records
	case !equality.Semantic.DeepEqual(published.Status, next.Status):
		return pacing.Texts
	}
	return pacing.Nothing
}

// isNews reports whether state, reasons, or facts for the next pass differ.
func isNews(published, next *application.Application) bool {
	was, is := published.Status, next.Status
	switch {
	case was.ClusterName() != is.ClusterName(), was.Target != is.Target, was.Awaiting != is.Awaiting,
		was.ObservedSpec != is.ObservedSpec, was.State != is.State,
		!slices.EqualFunc(was.Conditions, is.Conditions, isSameReason),
		!slices.Equal(published.Inventory, next.Inventory), !slices.Equal(published.Adopted, next.Adopted),
		!equality.Semantic.DeepEqual(published.Learned, next.Learned):
		return true
	case meta.IsStatusConditionTrue(was.Conditions, application.StatusTruncatedCondition):
		return false // the differing parts had no room, so they are not published
	}
	return !slices.EqualFunc(was.Objects, is.Objects, isSameFinding) || !maps.Equal(was.Services, is.Services)
}

func isSameReason(a, b metav1.Condition) bool {
	return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason
}

// isSameFinding reports whether two statuses of an object differ at most in text and health. The
// state covers the health of all objects.
func isSameFinding(a, b application.ObjectStatus) bool {
	a.Health, a.Message, b.Health, b.Message = "", "", "", ""
	return equality.Semantic.DeepEqual(a, b)
}

// isReplaced reports whether a document differs from the published one.
func isReplaced(published, next application.Published) bool {
	return !next.IsStored() && !next.Equal(published)
}
