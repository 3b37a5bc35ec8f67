package observer

import (
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/rest"
)

// If comparing an object panics, that is an error of this object alone. Other objects are
// compared as before. The values in the panic's text appear neither in the error nor in the
// log.
func TestPanic(t *testing.T) {
	t.Parallel()
	summarise := func(of func(data map[string]any) any) func(*Options) {
		return func(options *Options) {
			options.Summarise = func(live map[string]any) any {
				data, _ := live["data"].(map[string]any)
				if data["b"] != "secret" {
					return nil
				}
				return of(data)
			}
		}
	}
	cases := []struct {
		name string
		with func(*Options)
		data map[string]any
		want string
	}{
		{"a value of a type that JSON has not", func(*Options) {},
			map[string]any{"a": struct{ text string }{"secret"}}, "panic: *errors.errorString"},
		{"a panic with a text", summarise(func(data map[string]any) any { panic(data["b"]) }),
			map[string]any{"a": "1", "b": "secret"}, "panic: string"},
		{"a panic of the Go runtime, which names types", summarise(func(data map[string]any) any { return len(data["b"].([]any)) }),
			map[string]any{"a": "1", "b": "secret"}, "panic: interface conversion: interface {} is string, not []interface {}"},
		{"a summary that cannot be compared", summarise(func(data map[string]any) any { return struct{ of any }{data} }),
			map[string]any{"a": "1", "b": "secret"}, "panic: the summary cannot be compared"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			log := &lines{}
			f, live := started(t, log.option, func(options *Options, _ *rest.Config) { c.with(options) })
			spoilt := next(live)
			spoilt["data"] = c.data
			f.event(spoilt)
			f.expect(t, web)

			known := f.observe(t, other, f.target("web"), f.target("sentinel"))
			if known[0].Err != nil || !known[0].Stale || known[1].Err != nil {
				t.Errorf("known to another is %+v, want that it is to be read", known)
			}
			if known := f.Observe(web, []Target{f.target("web")}); known[0].Err == nil || !known[0].Exists() ||
				!strings.HasSuffix(known[0].Err.Error(), f.ref("web").String()+": "+c.want) {
				t.Errorf("known is %+v, want the error %q", known[0], c.want)
			}
			f.Start(web, []Target{f.target("web")}, []map[string]any{next(next(live))}) // it was repaired
			if got := f.last(web, "web"); got.Err != nil || got.Differs() {
				t.Errorf("last seen is %+v, want no error", got)
			}
			f.flush(t)
			if text := log.text(); !strings.Contains(text, c.want) || strings.Contains(text, "secret") {
				t.Errorf("the log has not the panic, or has a value: %s", text)
			}
		})
	}
}

// lines collects the lines of a log.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) option(options *Options, _ *rest.Config) {
	options.Logger = funcr.New(func(_, line string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all = append(l.all, line)
	}, funcr.Options{})
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.all, "\n")
}
