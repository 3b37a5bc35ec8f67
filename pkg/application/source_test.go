package application_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
)

const (
	someDigest = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
	password   = "PASSWORD"
)

func TestParseSource(t *testing.T) {
	template := func(url string) application.Source { return application.Source{URL: url} }
	tests := []struct {
		why, text string
		want      application.Source
	}{
		{"a template", "https://example.org/web.yaml", template("https://example.org/web.yaml")},
		{"the other suffix, deeper", "https://example.org/a/b/web.yml", template("https://example.org/a/b/web.yml")},
		{"blanks and a line break around it, as editors leave them", " https://example.org/web.yaml\r\n", template("https://example.org/web.yaml")},
		{"capitals in scheme and host", "HTTPS://Example.ORG/Web.yaml", template("https://example.org/Web.yaml")},
		{"the default port", "https://example.org:443/web.yaml", template("https://example.org/web.yaml")},
		{"another port", "https://example.org:8443/web.yaml", template("https://example.org:8443/web.yaml")},
		{"the name of a service", "https://files/web.yaml", template("https://files/web.yaml")},
		{"a name in punycode", "https://xn--bcher-kva.example/web.yaml", template("https://xn--bcher-kva.example/web.yaml")},
		{"an IPv4 address", "https://192.0.2.1/web.yaml", template("https://192.0.2.1/web.yaml")},
		{"an IPv6 address", "https://[2001:db8::1]:8443/web.yaml", template("https://[2001:db8::1]:8443/web.yaml")},
		{"a version in the path", "https://cdn.example.org/gh/user/repo@v1.2/web.yaml", template("https://cdn.example.org/gh/user/repo@v1.2/web.yaml")},
		{"escapes stay as they are written", "https://example.org/a%20b%2Fc/web.yaml", template("https://example.org/a%20b%2Fc/web.yaml")},
		{
			"a digest, in capitals as some programs print it", "https://example.org/web.yaml#sha256=" + strings.ToUpper(someDigest),
			application.Source{URL: "https://example.org/web.yaml", Digest: "sha256:" + someDigest},
		},
	}
	for _, c := range tests {
		got, isURL, err := application.ParseSource(application.ToscaKey, c.text)
		if err != nil || !isURL {
			t.Errorf("%s: a URL: %v, %v", c.why, isURL, err)
		}
		check.Equal(t, c.why, c.want, got)
	}
	for _, suffix := range []string{".csar", ".zip"} {
		want := application.Source{URL: "https://example.org/web" + suffix, Archive: true}
		if got, _, err := application.ParseSource(application.CSARKey, want.URL); err != nil || got != want {
			t.Errorf("%s: got %+v, %v", suffix, got, err)
		}
	}
}

func TestWhatIsNoURL(t *testing.T) {
	for why, text := range map[string]string{
		"nothing":                          "",
		"a template":                       "tosca_definitions_version: tosca_simple_yaml_1_0\n",
		"a template below a URL":           "https://example.org/web.yaml\ntosca_definitions_version: tosca_simple_yaml_1_0",
		"a URL in a comment":               "# https://example.org/web.yaml",
		"a scheme without its slashes":     "https:example.org/web.yaml",
		"a host, its scheme left out":      "example.org/web.yaml",
		"an archive":                       "PK\x03\x04 https://example.org/web.csar",
		"what would be a URL but for this": "\x00https://example.org/web.yaml",
	} {
		if source, isURL, err := application.ParseSource(application.ToscaKey, text); isURL || err != nil || source != (application.Source{}) {
			t.Errorf("%s: got %+v, %v, %v", why, source, isURL, err)
		}
	}
}

// Each refusal names the mistake and does not repeat the input, which may contain a password.
func TestParseSourceRefuses(t *testing.T) {
	const (
		spelling = "the host is an IP address in an unusual spelling"
		noName   = "the host is not a name"
		port     = "the port is not a number"
		path     = "the path of the URL is missing"
		suffix   = "the URL of a template ends in .yaml or .yml, that of an archive in .csar or .zip"
		unread   = "it is not a valid URL"
		foreign  = "a URL has no blanks"
		user     = "a URL with a user name or a password"
		query    = "a URL with a query"
		digest   = "after the # of a URL"
		only     = "only https:// is fetched"
	)
	tests := []struct{ text, want string }{
		{"http://example.org/web.yaml", "http:// is refused"},
		{"file:///etc/" + password + ".yaml", "file:// is refused"},
		{"ftp://example.org/web.yaml", only},
		{"https://user:" + password + "@example.org/web.yaml", user},
		{"https://@example.org/web.yaml", user},
		{"https://user:" + password + "/1@example.org/web.yaml", unread},
		{"https://user:%zz" + password + "@example.org/web.yaml", unread},
		{"https://example.org/web.yaml?token=" + password, query},
		{"https://example.org/web.yaml?", query},
		{"https://example.org/web.yaml#sha256=" + someDigest[1:], digest},
		{"https://example.org/web.yaml#sha256:" + someDigest, digest},
		{"https://example.org", path},
		{"https://example.org//web.yaml", path},
		{"https://example.org/a/../web.yaml", path},
		{"https://example.org/a/%2e%2e/web.yaml", path},
		{"https://example.org/a%00/web.yaml", path},
		{"https://example.org/a%ff/web.yaml", path},
		{"https://example.org/web", suffix},
		{"https://example.org/web.YAML", suffix},
		{"https://example.org/web.yaml/", path},
		{"https://example.org/web.csar", "that of an archive belongs under spec.csar"},
		{"https:///web.yaml", noName},
		{"https://exa_mple.org/web.yaml", noName},
		{"https://*.example.org/web.yaml", noName},
		{"https://" + strings.Repeat("a", 254) + "/web.yaml", noName},
		{"https://b\u00fccher.example/web.yaml", foreign},
		{"https://exam\u212ale.org/web.yaml", foreign},
		{"https://example.org\\@evil.test/web.yaml", foreign},
		{"https://example.org/web\t.yaml", foreign},
		{"https://example.org:0/web.yaml", port},
		{"https://example.org:65536/web.yaml", port},
		{"https://example.org:https/web.yaml", unread},
		{"https://2130706433/web.yaml", spelling},
		{"https://0x7f000001/web.yaml", spelling},
		{"https://0177.0.0.1/web.yaml", spelling},
		{"https://127.1/web.yaml", spelling},
		{"https://127.0.0.1./web.yaml", spelling},
		{"https://example.0x/web.yaml", spelling},
		{"https://[::ffff:127.0.0.1]/web.yaml", spelling},
		{"https://[0:0:0:0:0:0:0:1]/web.yaml", spelling},
		{"https://[fe80::1%25eth0]/web.yaml", spelling},
		{"https://example.org/" + strings.Repeat("a", 2048) + ".yaml", "at most 2048 bytes"},
	}
	for _, c := range tests {
		source, isURL, err := application.ParseSource(application.ToscaKey, c.text)
		if err == nil || !isURL || source != (application.Source{}) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: want %q, got %+v, %v: %v", c.text, c.want, source, isURL, err)
		} else if strings.Contains(err.Error(), password) {
			t.Errorf("%s: the error repeats it: %v", c.text, err)
		}
	}
	_, _, err := application.ParseSource(application.CSARKey, "https://example.org/web.yaml")
	check.Fails(t, "a template as an archive", err, "that of a template belongs under spec.tosca")
}

// FuzzParseSource checks the properties of accepted sources. A source has one written form,
// which parses to the same source, also with net/url. No part of it has a meaning for the host
// alone. Refusals do not repeat the input.
func FuzzParseSource(f *testing.F) {
	for _, text := range []string{
		"https://example.org/web.yaml", "https://example.org:8443/a/web.csar#sha256=" + someDigest, "HTTPS://[2001:db8::1]:1/%41.zip", "https://127.1/a.yml",
		"https://u:p@example.org/a.yaml", "http://example.org/?", "file:///etc/passwd", "https://a@b:c/d.yaml", "https://[::1%25a]/a.yaml", "https://0x/a.yaml\n",
		"https://example.org/a%2e/%2F.yaml", "https://192.0.2.1/a@b.yaml", "x://y", "tosca_definitions_version: tosca_simple_yaml_1_0",
	} {
		f.Add(text, false)
		f.Add(text, true)
	}
	f.Fuzz(func(t *testing.T, text string, archive bool) {
		key := application.ToscaKey
		if archive {
			key = application.CSARKey
		}
		source, isURL, err := application.ParseSource(key, text)
		if !isURL || err != nil {
			checkRefusal(t, key, source, isURL, err)
			return
		}
		checkTaken(t, key, source)
	})
}

func checkTaken(t *testing.T, key string, source application.Source) {
	t.Helper()
	again, _, err := application.ParseSource(key, source.String())
	if err != nil || again != source {
		t.Errorf("%s is read as %+v: %v", source, again, err)
	}
	address, err := url.Parse(source.URL)
	if err != nil || address.Scheme != "https" || address.User != nil || address.RawQuery != "" || address.ForceQuery || address.Fragment != "" || address.Opaque != "" {
		t.Fatalf("%s is %+v: %v", source, address, err)
	}
	origin, err := application.OriginOf(address)
	if err != nil || source.URL != "https://"+origin.String()+address.EscapedPath() || source.Archive != (key == application.CSARKey) {
		t.Errorf("%+v is of %s: %v", source, origin, err)
	}
}

// checkRefusal checks that a refusal is one of a fixed set of texts, so that no text contains
// the input.
func checkRefusal(t *testing.T, key string, source application.Source, isURL bool, err error) {
	t.Helper()
	if source != (application.Source{}) || !isURL && err != nil {
		t.Errorf("got %+v, %v, %v", source, isURL, err)
	}
	if err == nil {
		return
	}
	for _, text := range []string{
		"https://a/b.yaml#c", "https://a/" + strings.Repeat("b", 3000), "https://a\\", "https://a?", "https://a:b", "http://a", "file://a", "ftp://a",
		"https://a@b", "https://0/", "https://_/", "https://a:0/", "https://a/", "https://a/b.yaml", "https://a/b.csar", "https://a/b",
	} {
		if _, _, known := application.ParseSource(key, text); known != nil && known.Error() == err.Error() {
			return
		}
	}
	t.Errorf("a text that is not known: %v", err)
}
