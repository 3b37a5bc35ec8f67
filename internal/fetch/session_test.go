package fetch

import (
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
)

func (w *world) session(t *testing.T, source application.Source) *Session {
	t.Helper()
	session, err := w.fetcher(t).Session(t.Context(), source)
	check.Must(t, err)
	t.Cleanup(session.Close)
	return session
}

// The names are paths below the root of the host. Joined with the folder of the importing
// file, they lead to the same file as in a browser.
func TestImports(t *testing.T) {
	var asked []string
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.RequestURI)
		fmt.Fprint(w, "at "+r.URL.Path) //nolint:gosec // G705: no browser shows it
	})
	session := w.session(t, application.Source{URL: w.url("/a%20b/web/entry.yaml")})
	if session.Entry() != "a b/web/entry.yaml" {
		t.Errorf("the entry is %q", session.Entry())
	}
	folder := path.Dir(session.Entry())
	for _, name := range []string{session.Entry(), path.Join(folder, "types.yaml"), path.Join(folder, "../deep/er/types.yml"), "ü%2e.yaml"} {
		if body, err := session.Open(name); err != nil || string(body) != "at /"+name {
			t.Errorf("%s: got %q, %v", name, body, err)
		}
	}
	want := []string{"/a%20b/web/entry.yaml", "/a%20b/web/types.yaml", "/a%20b/deep/er/types.yml", "/%C3%BC%252e.yaml"}
	check.Equal(t, "asked", want, asked)
}

func TestImportsThatAreRefused(t *testing.T) {
	w := newWorld(t, func(http.ResponseWriter, *http.Request) { t.Error("the host was asked") })
	w.options.Hosts = append(w.options.Hosts, "evil.test")
	session := w.session(t, application.Source{URL: w.url("/web/entry.yaml")})
	for _, name := range []string{
		"", ".", "..", "../a.yaml", "web/../a.yaml", "/a.yaml", "//evil.test/a.yaml", "web//a.yaml", "https://evil.test/a.yaml", "https:/evil.test/a.yaml",
		"file:///etc/passwd.yaml", "evil.test:443/a.yaml", "web/a.yaml?b.yaml", "web/a.yaml#b.yaml", `web\..\a.yaml`, "web/a\n.yaml", "web/a\x00.yaml", "web/\xff.yaml",
		"etc/passwd", "web/a.json", "web/a.YAML", "web/a.csar", "web/entry.yaml/",
	} {
		_, err := session.Open(name)
		checkError(t, err, "refused: a name ")
		if !errors.Is(err, ErrRefused) {
			t.Errorf("%q: %v is no refusal", name, err)
		}
	}
}

// The digest of a pinned template does not cover imports, so such a template may not import
// anything.
func TestPinnedTemplateImportsNothing(t *testing.T) {
	w := newWorld(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })
	session := w.session(t, application.Source{URL: w.url("/entry.yaml"), Digest: application.DigestOf([]byte("hello"))})
	if _, err := session.Open("entry.yaml"); err != nil {
		t.Error(err)
	}
	_, err := session.Open("types.yaml")
	checkError(t, err, "/entry.yaml: refused: it has a digest, and what it imports has none")
}

// The rules for redirects of the first URL also apply to imports.
func TestImportsAreRedirected(t *testing.T) {
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://evil.test/"+canary, http.StatusFound)
	})
	session := w.session(t, application.Source{URL: w.url("/entry.yaml")})
	_, err := session.Open("types.yaml")
	checkError(t, err, "/types.yaml: it redirects: refused: evil.test is none of the hosts")
}

func TestBytesAreCountedOverAllFiles(t *testing.T) {
	w := newWorld(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat("a", 400)) })
	w.options.MaxBytes = 1000
	session := w.session(t, application.Source{URL: w.url("/entry.yaml")})
	for i, want := range []string{"", "", "more than 1000 bytes", "more than 1000 bytes"} {
		_, err := session.Open("types.yaml")
		if want != "" {
			checkError(t, err, want)
		} else if err != nil {
			t.Errorf("file %d: %v", i, err)
		}
	}
}

// A template may import the allowed number of files, each redirected once, and no more.
func TestRequestsAreCountedOverAllFiles(t *testing.T) {
	asked := 0
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		if asked++; r.URL.Path != "/there.yaml" {
			http.Redirect(w, r, "/there.yaml", http.StatusFound)
		}
	})
	session := w.session(t, application.Source{URL: w.url("/entry.yaml")})
	for range maxRequests / 2 {
		if _, err := session.Open("types.yaml"); err != nil {
			t.Fatal(err)
		}
	}
	_, err := session.Open("types.yaml")
	checkError(t, err, "refused: the files of one template take at most")
	if asked != maxRequests {
		t.Errorf("the host was asked %d times", asked)
	}
}

func TestTimeIsThatOfAllFiles(t *testing.T) {
	w := newWorld(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/entry.yaml" {
			<-r.Context().Done()
		}
	})
	w.options.Timeout = 500 * time.Millisecond
	session := w.session(t, application.Source{URL: w.url("/entry.yaml")})
	if _, err := session.Open("entry.yaml"); err != nil {
		t.Error(err)
	}
	for range 2 {
		_, err := session.Open("types.yaml")
		checkError(t, err, "no whole answer came within 500ms")
	}
}

// A source that was built in code is checked like a user's, and not repeated in errors.
func TestSourcesMadeByHand(t *testing.T) {
	w := newWorld(t, func(http.ResponseWriter, *http.Request) { t.Error("the host was asked") })
	texts := []string{"", "a.yaml", "https://user:" + canary + "@example.com:" + w.port + "/a.yaml", "https://%zz" + canary, "http://example.com/a.yaml"}
	for _, text := range texts {
		_, err := w.fetcher(t).Session(t.Context(), application.Source{URL: text})
		checkError(t, err, "refused: ")
	}
}
