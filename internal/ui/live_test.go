package ui

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/test/check"
)

func rowOf(name, state string) Row {
	return Row{NamespacedName: nameOf(name), State: Cell{Text: state, Tone: Good}}
}

func repairOf(name string, ago time.Duration) Repair {
	return Repair{NamespacedName: nameOf(name), At: noon.Add(-ago), Text: fmt.Sprint("repaired ", ago, " ago")}
}

// told is news as text: rows with their states, names that are gone after a minus, and repairs.
func told(found news) string {
	var words []string
	for _, row := range found.rows {
		words = append(words, row.Name+"="+row.State.Text)
	}
	for _, name := range found.gone {
		words = append(words, "-"+name.Name)
	}
	for _, repair := range found.repairs {
		words = append(words, repair.Name+"@"+noon.Sub(repair.At).String())
	}
	if found.problem != "" {
		words = append(words, "("+found.problem+")")
	}
	return strings.Join(words, " ")
}

func TestAPageGetsOnlyWhatItDoesNotHave(t *testing.T) {
	l := newLive()
	for i, step := range []struct {
		why          string
		change       Change
		fails        string
		want         string // since the step before
		fromTheStart string
	}{
		{"all", Change{Listed: true, Rows: []Row{rowOf("b", "1"), rowOf("a", "1")}, Repairs: []Repair{repairOf("a", time.Minute)}}, "", "a=1 b=1 a@1m0s", "a=1 b=1 a@1m0s"},
		{"one changes, and its repair is known", Change{Rows: []Row{rowOf("b", "2")}, Repairs: []Repair{repairOf("a", time.Minute)}}, "", "b=2", "a=1 b=2 a@1m0s"},
		{"one is gone", Change{Gone: []types.NamespacedName{nameOf("a")}}, "", "-a", "b=2 a@1m0s"},
		{"the watch fails", Change{}, "no network", "(no network)", "b=2 a@1m0s (no network)"},
		{"a change is no list: the problem stays", Change{Rows: []Row{rowOf("c", "1")}}, "", "c=1 (no network)", "b=2 c=1 a@1m0s (no network)"},
		{
			"a list removes those that it has not", Change{Listed: true, Rows: []Row{rowOf("a", "3")}, Repairs: []Repair{repairOf("a", time.Second), repairOf("a", time.Minute)}}, "",
			"a=3 -b -c a@1s", "a=3 a@1m0s a@1s",
		},
		{"those that are gone do not go again", Change{Listed: true, Rows: []Row{rowOf("a", "3")}}, "", "a=3", "a=3 a@1m0s a@1s"},
		{"one comes back", Change{Rows: []Row{rowOf("b", "4")}}, "", "b=4", "a=3 b=4 a@1m0s a@1s"},
	} {
		if step.fails != "" {
			l.fail(step.fails)
		} else {
			l.take(step.change)
		}
		slicesOf := l.since(i)
		slices.SortFunc(slicesOf.gone, compareNames)
		check.Equal(t, step.why, step.want, told(slicesOf))
		check.Equal(t, step.why+": number", i+1, slicesOf.number)
		check.Equal(t, step.why+": all", step.fromTheStart, told(l.since(0)))
		now := l.since(i + 1)
		check.Equal(t, step.why+": after it", "", told(news{rows: now.rows, gone: now.gone, repairs: now.repairs}))
	}
}

func TestTheNewestRepairsAreRemembered(t *testing.T) {
	l := newLive()
	var repairs []Repair
	for i := range 3 * mostRepairs {
		repairs = append(repairs, repairOf("a", time.Duration((i*7)%(3*mostRepairs))*time.Minute))
	}
	for range 2 { // the status is reported again and again
		for some := range slices.Chunk(repairs, 10) {
			l.take(Change{Repairs: some})
		}
	}
	found := l.since(0).repairs
	check.Equal(t, "how many", mostRepairs, len(found))
	for i, repair := range found { // the oldest first
		check.Equal(t, "repair", repairOf("a", time.Duration(mostRepairs-1-i)*time.Minute), repair)
	}
	number := l.since(0).number
	l.take(Change{Repairs: repairs})
	check.Empty(t, "new repairs", l.since(number).repairs)
}

// event is a server-sent event.
type event struct{ name, id, data string }

// listen opens a stream of a page in a real server after some changes, and returns its events.
func listen(t *testing.T, path, last string, changes ...Change) (*Server, <-chan event) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	check.Must(t, err)
	s := New(&fake{}, "hub", listener.Addr().String(), func() time.Time { return noon })
	for _, change := range changes {
		s.live.take(change)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: s.Handler(), ReadHeaderTimeout: time.Second}}
	server.Start()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(server.Close)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path, nil)
	check.Must(t, err)
	addCookie(r, s.guard.cookieName(), s.guard.secret)
	answered, err := server.Client().Do(withHeader(r, "Last-Event-Id", last)) //nolint:bodyclose // it is closed below
	check.Must(t, err)
	check.Equal(t, "status", http.StatusOK, answered.StatusCode)
	check.Equal(t, "type", "text/event-stream", answered.Header.Get("Content-Type"))
	events := make(chan event, 100)
	go func() {
		defer close(events)
		defer func() { _ = answered.Body.Close() }()
		var e event
		for lines := bufio.NewScanner(answered.Body); lines.Scan(); {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "event":
				e.name = value
			case "id":
				e.id = value
			case "data":
				e.data += value + "\n"
			case "":
				if e.name != "" {
					e.data = strings.TrimSuffix(e.data, "\n")
					events <- e
				}
				e = event{}
			default:
				events <- event{name: "unknown " + lines.Text()}
			}
		}
	}()
	return s, events
}

func next(t *testing.T, events <-chan event) event {
	t.Helper()
	select {
	case e, ok := <-events:
		if ok {
			return e
		}
		t.Fatal("the stream has ended")
	case <-time.After(20 * time.Second):
		t.Fatal("no event within 20 s")
	}
	return event{}
}

func TestTheOverviewIsToldOfEachChange(t *testing.T) {
	s, events := listen(t, "/events?since=0", "")
	row := rowOf("a", script+"\r\n\nevent: gone\ndata: x\n\n")
	s.live.take(Change{Listed: true, Rows: []Row{row}, Repairs: []Repair{repairOf("a", time.Minute)}})
	first := next(t, events)
	check.Equal(t, "event", "row", first.name)
	root, err := html.Parse(strings.NewReader("<table>" + first.data + "</table>"))
	check.Must(t, err)
	found := false
	for n := range root.Descendants() {
		checkNode(t, "row", "a", &html.Node{Type: n.Type, Data: n.Data})
		found = found || n.Data == "tr" && attributeOf(n, "id") == "row-demo/a"
	}
	check.Equal(t, "there is a row", true, found)
	repair := next(t, events)
	check.Equal(t, "repair", event{"repair", "", s.render("repair", repairOf("a", time.Minute))}, repair)
	check.Equal(t, "end", event{"problem", "1", ""}, next(t, events))
	s.live.fail("no\nnetwork")
	check.Equal(t, "problem", event{"problem", "2", "no\nnetwork"}, next(t, events))
	s.live.take(Change{Listed: true})
	check.Equal(t, "gone", event{"gone", "", "row-demo/a"}, next(t, events))
	check.Equal(t, "end", event{"problem", "3", ""}, next(t, events))
}

// A browser that connects again says what it has.
func TestAStreamContinues(t *testing.T) {
	changes := []Change{{Rows: []Row{rowOf("a", "1")}}, {Rows: []Row{rowOf("b", "1")}}, {Rows: []Row{rowOf("c", "1")}}}
	s, events := listen(t, "/events?since=0", "2", changes...)
	if e := next(t, events); e.name != "row" || !strings.Contains(e.data, "row-demo/c") {
		t.Errorf("%v", e)
	}
	check.Equal(t, "end", event{"problem", "3", ""}, next(t, events))
	s.live.take(changes[0])
	if e := next(t, events); e.name != "row" || !strings.Contains(e.data, "row-demo/a") {
		t.Errorf("%v", e)
	}
}

// The number is that of an earlier page: nothing of the present one may be left out.
func TestANumberOfAnotherServerIsCorrected(t *testing.T) {
	s, events := listen(t, "/events?since=7", "")
	check.Equal(t, "correction", event{"problem", "0", ""}, next(t, events))
	s.live.take(Change{Rows: []Row{rowOf("a", "1")}})
	check.Equal(t, "event", "row", next(t, events).name)
}

func TestAnApplicationIsToldOfItsOwnChanges(t *testing.T) {
	s, events := listen(t, "/application/events?since=0&"+queryOf(nameOf("a")).Encode(), "")
	s.live.take(Change{Rows: []Row{rowOf("b", "1")}})
	s.live.take(Change{Rows: []Row{rowOf("a", "1")}})
	check.Equal(t, "only its own change", event{"changed", "2", ""}, next(t, events))
}

func TestAnObjectIsToldOfItsChanges(t *testing.T) {
	s, events := listen(t, "/object/events?since=0&"+refOf("a", "Deployment", "web").query().Encode(), "")
	check.Equal(t, "of the object", event{"changed", "0", ""}, next(t, events))
	s.live.take(Change{Rows: []Row{rowOf("a", "1")}})
	check.Equal(t, "of its Application", event{"changed", "1", ""}, next(t, events))
}

// A stream that cannot follow an object says so.
func TestAnObjectThatCannotBeWatchedIsAProblem(t *testing.T) {
	_, events := listen(t, "/object/events?since=0&"+refOf("a", "Deployment", "forbidden").query().Encode(), "")
	check.Equal(t, "event", event{"problem", "0", "changes of the object cannot be followed: you may not watch it"}, next(t, events))
}

// Without the hub, the page of an Application or of an object shows an old state.
func TestEachPageIsToldThatItIsNotUpToDate(t *testing.T) {
	for _, path := range []string{"/application/events?since=0&" + queryOf(nameOf("a")).Encode(), "/object/events?since=0&" + refOf("a", "Deployment", "web").query().Encode()} {
		s, events := listen(t, path, "")
		if strings.HasPrefix(path, "/object") {
			check.Equal(t, "of the object", event{"changed", "0", ""}, next(t, events))
		}
		s.live.fail("no network")
		check.Equal(t, path, event{"problem", "0", "no network"}, next(t, events))
		s.live.take(Change{Listed: true})
		check.Equal(t, path, event{"problem", "0", ""}, next(t, events))
	}
}

// Who used the link first may be another user, whose page must not go on.
func TestASecondUseOfTheLinkEndsOpenPages(t *testing.T) {
	s, events := listen(t, "/events?since=0", "")
	for range 3 {
		s.guard.use(s.guard.token)
	}
	select {
	case e, ok := <-events:
		if ok {
			t.Errorf("the page gets %v", e)
		}
	case <-time.After(20 * time.Second):
		t.Error("the stream goes on")
	}
}
