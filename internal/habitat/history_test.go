package habitat

import (
	"errors"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/krake-observer/krake-observer/internal/resync"
)

// An older version of the Lease is an error for the election, and is reported. A version that cannot be
// ordered, and a failed request, are neither.
func TestALeaseThatIsOlderThanBefore(t *testing.T) {
	var reported error
	client := fake.NewClientset()
	h := &history{LeasesGetter: client.CoordinationV1(), restored: func(err error) { reported = err }}
	own := h.Leases("krake-system")
	version := func(version string) error {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "krake-system", Name: Name, ResourceVersion: version}}
		if err := client.Tracker().Update(coordinationv1.SchemeGroupVersion.WithResource("leases"), lease, "krake-system"); err != nil {
			t.Fatal(err)
		}
		_, err := own.Get(t.Context(), Name, metav1.GetOptions{})
		return err
	}
	if _, err := own.Get(t.Context(), Name, metav1.GetOptions{}); err == nil {
		t.Error("there is a Lease")
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: Name, ResourceVersion: "7"}}
	if _, err := own.Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, newer := range []string{"7", "10", "11"} {
		if err := version(newer); err != nil || reported != nil {
			t.Errorf("version %s: %v, reported %v", newer, err, reported)
		}
	}
	if err := version("9"); !errors.Is(err, resync.ErrRestored) || !errors.Is(reported, resync.ErrRestored) {
		t.Errorf("version 9 after 11: %v, reported %v", err, reported)
	}
	reported = nil
	if err := version("unordered"); err != nil || reported != nil {
		t.Errorf("a version without an order: %v, reported %v", err, reported)
	}
	if err := version("9"); err != nil || reported != nil {
		t.Errorf("after a version without an order: %v, reported %v", err, reported)
	}
	lease.ResourceVersion = "8"
	if _, err := own.Update(t.Context(), lease, metav1.UpdateOptions{}); !errors.Is(err, resync.ErrRestored) || reported == nil {
		t.Errorf("a write gives version 8 after 9: %v, reported %v", err, reported)
	}
}
