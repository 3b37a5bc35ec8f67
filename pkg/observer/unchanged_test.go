package observer

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/kit"
)

// TestUnchanged: a change of unobserved fields causes no comparison. Every other change does,
// and after a drift every event does, until an owner has seen the repair.
func TestUnchanged(t *testing.T) {
	text := song("1")
	marker := manifest.Pack(map[string]any{"kept": true})
	cases := []struct {
		name string
		// former is the object that was seen last. text is the next one.
		former, text string
		change       func(*Observation)
		compares     bool
	}{
		{"the same once more", text, text, nil, false},
		{"a version", text, strings.Replace(text, `"7"`, `"8"`, 1), nil, false},
		{"status", text, strings.Replace(text, `"phase": "x"`, `"phase": "y"`, 1), nil, false},
		{"managed fields", text, strings.Replace(text, `"manager": "m"`, `"manager": "n"`, 1), nil, false},
		{"a label of nobody", text, strings.Replace(text, `{"`+label, `{"theirs": "x", "`+label, 1), nil, false},
		{"data", text, song("2"), nil, true},
		{"spec", text, strings.Replace(text, `"replicas": 2`, `"replicas": 3`, 1), nil, true},
		{"a value becomes a name", text, strings.Replace(text, `"a": "1", "b": 2`, `"a": "1", "b2": 2`, 1), nil, true},
		{"another object", text, strings.Replace(text, `"uid": "u"`, `"uid": "v"`, 1), nil, true},
		{"it was read meanwhile", text, text, func(o *Observation) { o.fingerprint = 0 }, true},
		{"it differed, and still does", song("2"), song("2"), nil, true},
		{"it was not looked at under this target", text, text, func(o *Observation) { o.Stale = true }, true},
		{"it could not be looked at", text, text, func(o *Observation) { o.Err = errManagedFields }, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			o := looker(t, looked[1].desired)
			d := newDecoder(o.registry, configMaps)
			if !saw(o, d, c.former) {
				t.Fatal("not seen")
			}
			for _, views := range o.registry.watched[scope{resource: configMaps}] {
				for _, v := range views {
					v.last.Projection = marker
					if c.change != nil {
						c.change(&v.last)
					}
				}
			}
			got, err := d.record([]byte(c.text))
			if err != nil || len(got.views) == 0 {
				t.Fatalf("%d views, %v", len(got.views), err)
			}
			for _, seen := range got.views {
				if compares := string(seen.Projection) != string(marker); compares != c.compares {
					t.Errorf("compares: %v, want %v", compares, c.compares)
				}
				if seen.ResourceVersion != got.version || seen.UID != got.uid || seen.Summary != got.summary {
					t.Errorf("seen as %+v, want version, UID and summary of %+v", seen, got)
				}
			}
		})
	}
}

// TestADriftIsSeenAgain: the same drift returns after a repair, which the owner reported with
// the API server's answer.
func TestADriftIsSeenAgain(t *testing.T) {
	o := looker(t, looked[1].desired)
	d := newDecoder(o.registry, configMaps)
	of := func(version, value string) string { return strings.Replace(song(value), `"7"`, `"`+version+`"`, 1) }
	own := &ownerState{views: map[key]*view{}}
	for at, views := range o.registry.watched[scope{resource: configMaps}] {
		own.views[at] = views[0]
	}
	see := func(version, value string) bool {
		t.Helper()
		seen, err := d.record([]byte(of(version, value)))
		kit.Must(t, err)
		o.registry.sawLocked(seen.key(configMaps), seen)
		for _, v := range own.views {
			if v.last.ResourceVersion != version {
				t.Fatalf("seen is version %s, want %s", v.last.ResourceVersion, version)
			}
			return v.last.Differs()
		}
		return false
	}
	for _, step := range []struct {
		version, value string
		differs        bool
	}{{"7", "1", false}, {"8", "2", true}, {"9", "2", true}} {
		if differs := see(step.version, step.value); differs != step.differs {
			t.Fatalf("version %s differs: %v, want %v", step.version, differs, step.differs)
		}
	}
	o.options.Notify, o.registry.owners[web] = func(Owner) {}, own
	var targets []Target
	for _, v := range own.views {
		targets = append(targets, v.target)
	}
	o.Start(web, targets, []map[string]any{object(t, of("10", "1"))})
	if !see("11", "2") {
		t.Error("a drift was not seen that is the same as the one before")
	}
	if see("12", "1") {
		t.Error("a drift is seen that is mended")
	}
}

// TestObjectsWithoutAFingerprint: a list has no text of its objects, and neither has a single
// read.
func TestObjectsWithoutAFingerprint(t *testing.T) {
	o := looker(t, looked[1].desired)
	for _, value := range []string{"1", "2"} {
		found, ok := o.informers.source.transform(configMaps, &unstructured.Unstructured{Object: object(t, song(value))}).(*record)
		if !ok || len(found.views) == 0 {
			t.Fatalf("value %s is seen by nobody", value)
		}
		for i, v := range o.registry.viewsLocked(found.key(configMaps)) {
			if v.last = found.views[i].Observation; v.last.Differs() != (value == "2") {
				t.Errorf("value %s differs: %v", value, v.last.Differs())
			}
		}
	}
}
