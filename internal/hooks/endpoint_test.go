package hooks

import (
	"testing"

	"github.com/krake-observer/krake-observer/pkg/application"
)

func TestEndpoint(t *testing.T) {
	const path = "/kubernetes/namespaces/demo/applications/web/complete"
	for _, test := range []struct{ text, want string }{
		{"https://krake-hooks.krake-agents.svc:443", "https://krake-hooks.krake-agents.svc:443" + path},
		{"https://hooks.example.org", "https://hooks.example.org" + path},
		{"https://10.0.0.1:8444", "https://10.0.0.1:8444" + path},
		{"https://[fd00::1]:8444", "https://[fd00::1]:8444" + path},
		{"http://krake-hooks.krake-agents.svc", ""},
		{"krake-hooks.krake-agents.svc:443", ""},
		{"", ""},
		{"https://:443", ""},
		{"https://*.example.org", ""},
		{"https://[fe80::1%25eth0]", ""},
		{"https://user:pass@example.org", ""},
		{"https://example.org/path", ""},
		{"https://example.org?a", ""},
		{"https://example.org:0", ""},
		{"https://example.org:", "https://example.org" + path},
	} {
		endpoint, err := ParseEndpoint(test.text)
		if (err == nil) != (test.want != "") {
			t.Errorf("%q: %v", test.text, err)
		} else if got := endpoint.URL(web, application.Complete); err == nil && got != test.want {
			t.Errorf("%q: got %s", test.text, got)
		}
	}
}
