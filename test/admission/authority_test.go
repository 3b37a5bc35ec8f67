package admission

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// place is the way in which the manifest names the namespace.
type place string

const (
	absent place = "absent"
	own    place = "own"
	other  place = "other"
)

// matrix has what every cell of the table needs.
type matrix struct {
	namespace, other string
	clients          map[user]kubernetes.Interface
}

// rowUsers returns the rows of the table, each with its places.
func rowUsers() []user {
	return []user{viewer, low, editor, admin, root, deployer, guesser, neighbour, agent, nobody}
}

// block is a block of the table: a verb, and the place of its namespace.
type block struct {
	verb   string
	places []place
	try    func(m *matrix, ctx context.Context, u user, k kind, p place) error
}

func blocks() []block {
	return []block{
		{"create", []place{absent, own, other}, (*matrix).create},
		{"update", []place{absent, own, other}, (*matrix).update},
		{"remove", []place{absent}, (*matrix).remove},
		{"delete", []place{absent}, (*matrix).delete},
	}
}

// The table testdata/authority.txt lists who may do what through an Application. This
// test compares it with a real API server with the shipped roles and policies.
func TestAuthorityMatrix(t *testing.T) {
	want, err := os.ReadFile("testdata/authority.txt")
	kit.Must(t, err)
	m := newMatrix(t)
	var table strings.Builder
	cells := 0
	for _, b := range blocks() {
		text, n := m.tabulate(t, b)
		table.WriteString(text)
		cells += n
	}
	t.Logf("%d cells", cells)
	if cells < 400 {
		t.Errorf("the table has %d cells, want at least 400", cells)
	}
	if diff := cmp.Diff(normalized(string(want)), normalized(table.String())); diff != "" {
		t.Errorf("the verdicts (-want +got):\n%s", diff)
	}
	m.really(t)
}

// normalized removes the legend and the column widths.
func normalized(table string) string {
	var lines []string
	for line := range strings.Lines(table) {
		if words := strings.Fields(line); len(words) > 0 && !strings.HasPrefix(words[0], "#") {
			lines = append(lines, strings.Join(words, " "))
		}
	}
	return strings.Join(lines, "\n")
}

// newMatrix creates, as root, an Application for each kind that allows one.
func newMatrix(t *testing.T) *matrix {
	t.Helper()
	m := &matrix{namespace: newNamespace(t), other: newNamespace(t), clients: map[user]kubernetes.Interface{}}
	bindMore(t, m.namespace, m.other)
	hub.Make(t, "", stage)
	for _, u := range rowUsers() {
		m.clients[u] = u.client(t)
	}
	for _, k := range kinds() {
		app := withManifest(m.namespace, "held-"+k.column, base(k), k.object("", "held-object-"+k.column, "1"))
		if k.refused {
			app.Data[application.ManifestKey] = base(k)
		}
		kit.Must(t, create(t, root, app))
	}
	return m
}

// base is the object that every Application of the matrix has.
func base(k kind) string { return kinds()[0].object("", "base-"+k.column, "1") }

// tabulate tries each cell of a block.
func (m *matrix) tabulate(t *testing.T, b block) (text string, cells int) {
	t.Helper()
	lines := []string{b.verb}
	for _, k := range kinds() {
		lines[0] += " " + k.column
	}
	type row struct {
		user  user
		place place
	}
	var rows []row
	for _, u := range rowUsers() {
		for _, p := range b.places {
			rows = append(rows, row{u, p})
		}
	}
	verdicts := make([]string, len(rows))
	var group errgroup.Group
	group.SetLimit(4)
	for i, r := range rows {
		group.Go(func() error {
			for _, k := range kinds() {
				verdicts[i] += " " + string(m.cell(t.Context(), b, r.user, k, r.place))
			}
			return nil
		})
	}
	kit.Must(t, group.Wait())
	for i, r := range rows {
		lines = append(lines, fmt.Sprintf("%s %s%s", short(r.user), r.place, verdicts[i]))
		cells += len(kinds()) - strings.Count(verdicts[i], " "+string(notACell))
	}
	return strings.Join(lines, "\n") + "\n", cells
}

// short returns the table's name of a user.
func short(u user) string {
	if u == agent {
		return "agent"
	}
	return string(u)
}

func (m *matrix) cell(ctx context.Context, b block, u user, k kind, p place) verdict {
	if k.refused && (b.verb == "remove" || b.verb == "delete") { // it was never admitted
		return notACell
	}
	return verdictOf(b.try(m, ctx, u, k, p))
}

// object returns an object of a kind, in a place.
func (m *matrix) object(k kind, p place, name, revision string) string {
	return k.object(map[place]string{absent: "", own: m.namespace, other: m.other}[p], name, revision)
}

// create creates an Application with the object.
func (m *matrix) create(ctx context.Context, u user, k kind, p place) error {
	app := withManifest(m.namespace, "new", m.object(k, p, "object", "1"))
	made, err := m.clients[u].CoreV1().ConfigMaps(m.namespace).Create(ctx, app, dryRun)
	return applies(made, "object", true, err)
}

// update changes the object in an Application that root made, or adds it where root
// could not.
func (m *matrix) update(ctx context.Context, u user, k kind, p place) error {
	return m.patch(ctx, u, k, true, base(k), m.object(k, p, "held-object-"+k.column, "2"))
}

// remove removes the object from an Application that root made.
func (m *matrix) remove(ctx context.Context, u user, k kind, _ place) error {
	return m.patch(ctx, u, k, false, base(k))
}

func (m *matrix) patch(ctx context.Context, u user, k kind, there bool, objects ...string) error {
	made, err := m.clients[u].CoreV1().ConfigMaps(m.namespace).Patch(ctx, "held-"+k.column, types.MergePatchType,
		[]byte(manifestPatch(objects...)), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	return applies(made, `"held-object-`+k.column, there, err)
}

// delete deletes an Application that root made.
func (m *matrix) delete(ctx context.Context, u user, k kind, _ place) error {
	return m.clients[u].CoreV1().ConfigMaps(m.namespace).Delete(ctx, "held-"+k.column, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
}

// applies returns an error if an Application was admitted, and its last applied
// manifest has the object unless wanted, or lacks it if wanted.
func applies(made *corev1.ConfigMap, name string, want bool, err error) error {
	if err != nil {
		return err
	}
	if got := strings.Contains(made.Data[application.LastAppliedKey], name); got != want {
		return fmt.Errorf("admitted, but that %s is in the last applied manifest is %t", name, got)
	}
	return nil
}

// really repeats some cells of the table without the dry run: admitted objects are
// created, and all others do not exist.
func (m *matrix) really(t *testing.T) {
	t.Helper()
	done := 0
	for _, u := range []user{viewer, low, editor, deployer, root} {
		for _, k := range kinds()[:7] {
			if k.column == "secret" { // the shipped agent's rights do not include it
				continue
			}
			done++
			name := "real-" + string(u) + "-" + k.column
			object := name + "-object"
			v := verdictOf(create(t, u, withManifest(m.namespace, name, k.object("", object, "1"))))
			if v == admitted {
				kit.EventuallyTrue(t, "no "+k.kind+" "+object, func() bool { return m.has(t, k, object) })
			} else if get(t, m.namespace, name) != nil || m.has(t, k, object) {
				t.Errorf("%s: %s, but something is there", name, v)
			}
			want := m.cell(t.Context(), blocks()[0], u, k, absent)
			if v != want {
				t.Errorf("%s creates an Application with %s: %s, in the dry run %s", u, k.kind, v, want)
			}
		}
	}
	for _, u := range []user{viewer, low, deployer, editor} {
		done += 2
		deploy, config := kinds()[1], kinds()[0]
		name := "taken-" + string(u)
		kit.Must(t, create(t, root, withManifest(m.namespace, name, config.object("", name+"-config", "1"), deploy.object("", name, "1"))))
		kit.EventuallyTrue(t, "no Deployment "+name, func() bool { return m.has(t, deploy, name) })
		m.takeAway(t, u, name)
	}
	t.Logf("%d cells were really done", done)
}

// takeAway removes the Deployment from an Application, and then deletes the
// Application.
func (m *matrix) takeAway(t *testing.T, u user, name string) {
	t.Helper()
	deploy, config := kinds()[1], kinds()[0]
	removed := verdictOf(patch(t, u, m.namespace, name, manifestPatch(config.object("", name+"-config", "1"))))
	deleted := verdictOf(u.client(t).CoreV1().ConfigMaps(m.namespace).Delete(t.Context(), name, metav1.DeleteOptions{}))
	if removed == admitted {
		hub.EventuallyGone(t, kit.Deployments, m.namespace, name)
	}
	if deleted == admitted {
		eventuallyGone(t, m.namespace, name)
	}
	mustHeal(t, m.namespace, m.beacon(t)) // the agent had its chance
	if want := removed != admitted && deleted != admitted; m.has(t, deploy, name) != want {
		t.Errorf("%s: removed %s, deleted %s, and the Deployment is there: %t", u, removed, deleted, !want)
	}
}

// beacon returns an Application whose repair shows that the agent works.
func (m *matrix) beacon(t *testing.T) string {
	t.Helper()
	if get(t, m.namespace, "web") == nil {
		mustRun(t, m.namespace, "web")
	}
	return "web"
}

func (m *matrix) has(t *testing.T, k kind, name string) bool {
	t.Helper()
	return hub.Get(t, k.resourceOf(), m.namespace, name) != nil
}
