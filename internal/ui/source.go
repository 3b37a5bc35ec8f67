package ui

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/internal/lens"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// Source reads what the page shows. Its methods are called concurrently. Their errors are shown to the
// user. None of them writes to a cluster.
type Source interface {
	// Follow reports all Applications, and then each change, until the context ends or the
	// watch fails.
	Follow(ctx context.Context, changed func(Change)) error
	Application(ctx context.Context, name types.NamespacedName) (Application, error)
	// Object reads an object. Private shows values that may be secrets, except those of a Secret.
	Object(ctx context.Context, ref Ref, private bool) (Object, error)
	// Watch calls changed after each change of an object since a version, until the context ends or the watch
	// fails. Without a version it is called at once.
	Watch(ctx context.Context, ref Ref, version string, changed func()) error
	// Explain says why a field is observed, or is not.
	Explain(ctx context.Context, ref Ref, place schema.Path) (string, error)
	// Draft returns the observer schema after toggling fields.
	Draft(ctx context.Context, ref Ref, toggles []lens.Toggle) (Draft, error)
	// Forecast returns what would happen if Applications, or a manifest as the Application of this name,
	// were applied.
	Forecast(ctx context.Context, name, text string) (Forecast, error)
}

// Tone says whether something is well. It is never shown by colour alone.
type Tone string

// The tones. Plain needs no attention.
const (
	Plain Tone = "plain"
	Good  Tone = "good"
	Busy  Tone = "busy"
	Bad   Tone = "bad"
)

// Change is all Applications if Listed is set, otherwise those that are new, have changed or are gone.
type Change struct {
	Listed bool
	Rows   []Row
	Gone   []types.NamespacedName
	// Repairs are those that the status of the Applications remembers, known ones included.
	Repairs []Repair
}

// Row is the overview of an Application.
type Row struct {
	types.NamespacedName

	Cluster, Mode, Message string
	State, Ready           Cell
	// Drifts is a text such as "3 (1 open)". Hours counts the records of drifts of each hour of the last day, the
	// present hour last.
	Drifts Cell
	Hours  [24]int
}

// Repair is a drift that was reverted.
type Repair struct {
	types.NamespacedName

	// At is when the drift was seen.
	At   time.Time
	Text string
}

// Cell is a text with its tone.
type Cell struct {
	Text string
	Tone Tone
}

// Table is a part of an Application's page. A row may have fewer cells than the header, and Header may
// be nil.
type Table struct {
	Title  string
	Header []string
	Rows   [][]Cell
}

// Application is the page of an Application.
type Application struct {
	Row

	About   Table
	Objects []ObjectRow
	// Tables are the conditions and further parts.
	Tables []Table
	Drifts []Drift
	// Bars are holds and contention.
	Bars []Bar
}

// ObjectRow is an object of an Application.
type ObjectRow struct {
	Ref Ref
	// Title is "Deployment/web".
	Title                   string
	Health, Reason, Message Cell
}

// Drift is a record of the history.
type Drift struct {
	Lane string
	Seen time.Time
	// Repaired is zero if the drift was not repaired.
	Repaired time.Time
	// Record has the names and values of the exact record.
	Record [][2]string
	// Summary is one line.
	Summary string
}

// Bar is a time in which something was held, or fought about.
type Bar struct {
	Lane, Kind, Summary string
	From, To            time.Time
}

// Ref is an object of an Application.
type Ref struct {
	Application types.NamespacedName
	Object      manifest.ID
}

// Object is a live object as its Application sees it.
type Object struct {
	Title string
	// Version is that of the object, empty if there is none.
	Version string
	// Missing: the cluster has no such object.
	Missing bool
	// HasPrivate: some values are hidden that the user may ask for.
	HasPrivate bool
	Lines      []lens.Line
}

// Draft is an observer schema, with the command that would apply it.
type Draft struct {
	Schema, Command string
	// Said has the warnings and refusals of admission.
	Said []string
}

// Forecast is what would happen if a manifest were applied.
type Forecast struct {
	// Said has the warnings and refusals of admission.
	Said  []string
	Parts []ForecastPart
}

// ForecastPart is what would happen to one object.
type ForecastPart struct {
	Title, Outcome string
	Tone           Tone
	// Diff is a unified diff from the live to the desired values.
	Diff  string
	Lines []lens.Line
}
