package fetch

import (
	"net/url"
	"testing"

	"github.com/krake-observer/krake-observer/test/check"
)

func TestHosts(t *testing.T) {
	hosts, err := newHosts([]string{"example.org", "Example.NET:8443", "*.example.com", "*.ports.example.com:8443", "192.0.2.1", "[2001:db8::1]:8443"})
	check.Must(t, err)
	tests := map[string]string{
		"https://example.org/a?b":               "https://example.org/a?b",
		"https://EXAMPLE.org:443/a#b":           "https://example.org/a",
		"https://example.org:8443/a":            "",
		"https://example.org.evil.test/a":       "",
		"https://example.net:8443/a":            "https://example.net:8443/a",
		"https://example.com/a":                 "", // * stands for exactly one label
		"https://a.example.com/a%2Fb":           "https://a.example.com/a%2Fb",
		"https://a.b.example.com/a":             "", // and not for two
		"https://a.example.com:8443/a":          "",
		"https://a.ports.example.com:8443/a":    "https://a.ports.example.com:8443/a",
		"https://192.0.2.1/a":                   "https://192.0.2.1/a",
		"https://192.0.2.01/a":                  "",
		"https://[2001:db8::1]:8443/a":          "https://[2001:db8::1]:8443/a",
		"https://[2001:db8:0::1]:8443/a":        "",
		"http://example.org/a":                  "",
		"https://user@example.org/a":            "",
		"https://example.org@evil.test/a":       "",
		"//example.org/a":                       "",
		"https://\u212Aexample.org.evil.test/a": "",
		"https://e\u0445ample.org/a":            "", // a Cyrillic letter
		"https://example.org:0443/a":            "",
		"https://example.org:/a":                "",
		"https://*.example.com/a":               "",
	}
	for text, want := range tests {
		address, err := url.Parse(text)
		if err != nil {
			continue // not a URL: not checked
		}
		got := ""
		if checked, err := hosts.check(address); err == nil {
			got = checked.String()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func TestHostsThatCannotBeMeant(t *testing.T) {
	for _, name := range []string{
		"", "*", "*.", "*.org", "*.*.example.org", "a.*.example.org", "exam*.org", "*example.org", ".example.org", "example.org.",
		"https://example.org", "example.org/", "example.org/a", "example.org?", "example.org#", "user@example.org", "example.org:", "example.org:0",
		"example.org:65536", "example.org:https", "exa mple.org", "example_a.org", "2130706433", "127.1", "0x7f.1", "127.0.0.01",
		"::1", "[::1", "[::ffff:127.0.0.1]", "[0:0::1]", "[fe80::1%25eth0]", "*.192.0.2.1", "*.[::1]", "bücher.example", "example.org,example.net", "-a.org",
	} {
		if _, err := newHosts([]string{name}); err == nil {
			t.Errorf("%q is taken", name)
		}
	}
}
