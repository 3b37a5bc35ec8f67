package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/krake-observer/krake-observer/internal/ui"
	"github.com/krake-observer/krake-observer/pkg/application"
)

// uiRow is what the page keeps of an Application: its ConfigMap may have a megabyte.
type uiRow struct {
	overview overview
	admitted bool
	// seen has the time of each record of the history.
	seen []time.Time
	// shown is the row as it was reported last.
	shown ui.Row
}

// uiRows reports rows that have changed.
type uiRows struct {
	source  *uiSource
	changed func(ui.Change)
	rows    map[types.NamespacedName]*uiRow
	beats   heartbeats
}

// silenceInterval is how often it is looked which agents are no longer heard: no event reports that. It makes
// no request.
const silenceInterval = 5 * time.Second

// Follow implements [ui.Source].
func (s *uiSource) Follow(ctx context.Context, changed func(ui.Change)) error {
	rows := uiRows{source: s, changed: changed, rows: map[types.NamespacedName]*uiRow{}}
	group, ctx := errgroup.WithContext(ctx)
	changes, beats := make(chan change), make(chan heartbeats)
	group.Go(func() error { return follow(ctx, s.environment, s.scope, changes) })
	group.Go(func() error { return s.followLeases(ctx, beats) })
	ticker := time.NewTicker(silenceInterval)
	defer ticker.Stop()
	group.Go(func() error {
		for {
			select {
			case c, ok := <-changes:
				if !ok { // the watch has ended, and the group cancels the context: its error must be the first
					<-ctx.Done()
					return nil
				}
				rows.take(c)
			case rows.beats = <-beats:
				rows.look()
			case <-ticker.C:
				rows.look()
			}
		}
	})
	return group.Wait()
}

func (r *uiRows) take(c change) {
	told := ui.Change{Listed: c.listed}
	if c.listed {
		clear(r.rows)
	}
	for _, i := range c.items {
		name := nameOf(i)
		if c.gone {
			if r.rows[name] != nil { // other ConfigMaps come and go, too
				delete(r.rows, name)
				told.Gone = append(told.Gone, name)
			}
			continue
		}
		row := &uiRow{overview: overviewOf(i, heartbeats{}, r.source.now()), admitted: i.admitted()}
		if i.app != nil {
			for _, drift := range i.app.Status.Drifts {
				row.seen = append(row.seen, drift.Seen.Time)
				if drift.Repaired != "" {
					told.Repairs = append(told.Repairs, ui.Repair{NamespacedName: name, At: drift.Seen.Time, Text: driftSummary(drift, i.stored.Namespace)})
				}
			}
		}
		row.shown = row.show(r.beats, r.source.now())
		r.rows[name] = row
		told.Rows = append(told.Rows, row.shown)
	}
	if told.Listed || told.Rows != nil || told.Gone != nil {
		r.changed(told)
	}
}

// look reports the rows that have changed with the time, or with the agents that are heard.
func (r *uiRows) look() {
	var told ui.Change
	for _, row := range r.rows {
		if shown := row.show(r.beats, r.source.now()); shown != row.shown {
			row.shown = shown
			told.Rows = append(told.Rows, shown)
		}
	}
	if told.Rows != nil {
		r.changed(told)
	}
}

// show returns the row at a time. The age of a drift is on the page of the Application: here it would
// change all the time.
func (r *uiRow) show(beats heartbeats, now time.Time) ui.Row {
	o := r.overview
	if silence := beats.silence(o.cluster, now); r.admitted && silence != "" {
		o.state, o.ready, o.message = stateAgentUnreachable, metav1.ConditionUnknown, silence
	}
	row := ui.Row{
		NamespacedName: types.NamespacedName{Namespace: o.namespace, Name: o.name}, Cluster: o.cluster, Message: o.message,
		State: uiCell(o.stateCell()), Ready: uiCell(o.readyCell()), Drifts: ui.Cell{Text: o.drifts.counted(), Tone: ui.Plain},
		Mode: string(o.mode),
	}
	if o.drifts.open > 0 {
		row.Drifts = ui.Cell{Text: fmt.Sprintf("%s (%d open)", o.drifts.counted(), o.drifts.open), Tone: ui.Busy}
	}
	if o.mode == application.Enforce && o.heldUntil.After(now) {
		row.Mode = "held until " + timeOf(o.heldUntil)
	}
	if o.held > 0 {
		row.Mode += ", " + counted(o.held, "object", "objects") + " held"
	}
	// A record counts once: only the newest of its drifts has a time, and others may be older than a day.
	for _, seen := range r.seen {
		if hours := int(now.Sub(seen) / time.Hour); hours >= 0 && hours < len(row.Hours) {
			row.Hours[len(row.Hours)-1-hours]++
		}
	}
	return row
}

func uiCell(c cell) ui.Cell {
	tones := map[colour]ui.Tone{green: ui.Good, yellow: ui.Busy, red: ui.Bad}
	return ui.Cell{Text: c.text, Tone: cmp.Or(tones[c.colour], ui.Plain)}
}

// driftSummary returns "Deployment/web: spec.replicas: 2 -> 5, by kubectl-scale, reverted in 4ms".
func driftSummary(drift application.Drift, home string) string {
	repaired := repairedCell(drift).text
	if drift.Repaired == "" {
		repaired = "not repaired"
	}
	return oneLine(fmt.Sprintf("%s: %s, by %s, %s", objectText(drift.Object, home), fieldsText(drift), byWhom(drift), repaired))
}

// followLeases sends the heartbeats of the agents, and then each change, until the context ends. A user
// who may not read or watch the Leases gets none.
func (s *uiSource) followLeases(ctx context.Context, beats chan<- heartbeats) error {
	config, err := s.hub.ToRESTConfig()
	if err != nil {
		return err
	}
	clients, err := coordinationv1client.NewForConfig(config)
	if err != nil {
		return err
	}
	leases := clients.Leases(application.AgentsNamespace)
	known, err := readHeartbeats(ctx, s.environment) // of all clusters
	if err != nil || !known.read {
		return err
	}
	for ctx.Err() == nil { // a new watch begins with all Leases, so that no other list is needed
		switch err := followLeasesFrom(ctx, leases, known, beats); {
		case apierrors.IsForbidden(err):
			return nil
		case err != nil:
			return fmt.Errorf("watch the Leases of the agents: %w", err)
		}
		select { // a pause, in case each watch ends at once
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
	return nil
}

// followLeasesFrom sends the heartbeats until the watch ends.
func followLeasesFrom(ctx context.Context, leases coordinationv1client.LeaseInterface, known heartbeats, beats chan<- heartbeats) error {
	watcher, err := leases.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer watcher.Stop()
	for {
		sent := known
		sent.leases = maps.Clone(known.leases)
		select {
		case beats <- sent:
		case <-ctx.Done():
			return nil
		}
		event, ok := <-watcher.ResultChan()
		lease, isLease := event.Object.(*coordinationv1.Lease)
		switch {
		case !ok:
			return nil
		case !isLease:
			return unlessExpired(apierrors.FromObject(event.Object))
		case event.Type == watch.Deleted:
			delete(known.leases, lease.Name)
		default:
			known.leases[lease.Name] = lease.Spec
		}
	}
}
