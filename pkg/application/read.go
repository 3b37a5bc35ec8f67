package application

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ErrFormat is the error of an unknown format version. A program that gets it writes nothing and
// deletes nothing.
var ErrFormat = errors.New("unknown format version")

// errUnverified is the error of an Application whose reader has not verified its signature.
var errUnverified = errors.New("its signature was not verified")

// Read is [ReadFor] the target cluster.
func Read(cm *corev1.ConfigMap) (*Application, error) { return ReadFor(cm, ClusterOf(cm)) }

// ReadFor reads the Application from its ConfigMap for the agent of a cluster that holds objects of
// it, or did so. The error is ErrFormat; a document that does not parse is in Damaged. The caller
// verifies the signature.
func ReadFor(cm *corev1.ConfigMap, holder string) (*Application, error) {
	if format := cm.Annotations[FormatAnnotation]; format != Format {
		return nil, fmt.Errorf("%w %q in annotation %s: this program knows %s", ErrFormat, format, FormatAnnotation, Format)
	}
	settings, _ := SettingsOf(cm) // admission refused unreadable values
	app := &Application{
		Settings:       settings,
		NamespacedName: types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name},
		UID:            cm.UID,
		Version:        cm.ResourceVersion,
		Cluster:        ClusterOf(cm),
		Holder:         holder,
		OtherHolders:   othersOf(cm, holder),
		ServiceAccount: cm.Annotations[ServiceAccountAnnotation],
		Deleted:        !cm.DeletionTimestamp.IsZero(),
		NotAdmitted:    errUnverified,
		Spec:           SpecOf(cm),
		Annotations:    cm.Annotations,
		Finalized:      slices.Contains(cm.Finalizers, Finalizer(holder)),
		Elsewhere:      elsewhere(cm, holder),
		LastApplied:    stored(cm, LastAppliedKey),
		LastObserved:   stored(cm, LastObservedKey),
	}
	var recorded inventory
	for key, document := range map[string]any{
		LearnedKey: &app.Learned, StatusKey: &app.Status, InventoryKey(holder): &recorded,
	} {
		if err := decode(cm, key, document); err != nil {
			if app.Damaged == nil {
				app.Damaged = map[string]error{}
			}
			app.Damaged[key] = err
		}
	}
	app.DocumentsDigest = recorded.Digest
	app.DocumentsAreOurs = app.DocumentsDigest == digestOfDocuments(cm)
	if recorded.Hooks != nil {
		app.Hooks = *recorded.Hooks
	}
	app.Spec.Fetched = app.Spec.fetched(cm, recorded.Fetched)
	app.Inventory = recorded.ids()
	for _, object := range recorded.Objects {
		if object.Adopted {
			app.Adopted = append(app.Adopted, object.ID)
		}
	}
	return app, nil
}

// elsewhere returns the other clusters with objects, according to their finalizers, with the
// progress of the shutdown there.
func elsewhere(cm *corev1.ConfigMap, holder string) map[string]ShutdownRecord {
	var records map[string]ShutdownRecord
	for _, cluster := range othersOf(cm, holder) {
		if !slices.Contains(cm.Finalizers, Finalizer(cluster)) {
			continue
		}
		var recorded inventory
		var record ShutdownRecord
		if err := decode(cm, InventoryKey(cluster), &recorded); err == nil && recorded.Hooks != nil && recorded.Hooks.Shutdown != nil {
			record = *recorded.Hooks.Shutdown
		}
		if records == nil {
			records = map[string]ShutdownRecord{}
		}
		records[cluster] = record
	}
	return records
}

// fetched returns the stored translation if the holder's agent recorded it for the present source.
func (s Spec) fetched(cm *corev1.ConfigMap, recorded string) string {
	text, err := read(cm, TranslatedKey)
	if err != nil || recorded == "" || recorded != s.fetchedAs(string(text)) {
		return "" // the agent fetches it again
	}
	return string(text)
}

// LearnedOf reads the values that were learned on that cluster, see [Application.Learned]. It
// returns nil if the status is about another cluster.
func LearnedOf(cm *corev1.ConfigMap, cluster string) ([]map[string]any, error) {
	var learned []map[string]any
	if err := decode(cm, LearnedKey, &learned); err != nil {
		return nil, err
	}
	var status Status
	if err := decode(cm, StatusKey, &status); err != nil {
		status = Status{} // as the agent takes it
	}
	if status.ClusterName() != cluster {
		return nil, nil
	}
	return learned, nil
}

// SameFor reports whether the agent of the cluster need not act on the difference between two
// versions of a ConfigMap. Of the parts by webhook and agents, only changes of the other holders
// matter to it. The agent of a former cluster also acts once the objects exist on the new cluster,
// or are awaited there.
func SameFor(a, b *corev1.ConfigMap, cluster string) bool {
	return a.UID == b.UID &&
		a.DeletionTimestamp.Equal(b.DeletionTimestamp) &&
		maps.Equal(a.Annotations, b.Annotations) &&
		SpecOf(a) == SpecOf(b) &&
		slices.Equal(othersOf(a, cluster), othersOf(b, cluster)) &&
		maps.EqualFunc(elsewhere(a, cluster), elsewhere(b, cluster), sameShutdown) &&
		(ClusterOf(b) == cluster || timeToLeave(a, cluster) == timeToLeave(b, cluster))
}

func sameShutdown(a, b ShutdownRecord) bool { return a.State == b.State && a.Message == b.Message }

// timeToLeave returns the conditions that the agent of a former cluster waits for.
func timeToLeave(cm *corev1.ConfigMap, cluster string) (due struct{ ready, awaited bool }) {
	if app, err := ReadFor(cm, cluster); err == nil {
		due.ready, due.awaited = app.IsReady(), app.IsAwaited()
	}
	return due
}
