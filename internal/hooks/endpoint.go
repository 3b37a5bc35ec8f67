package hooks

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// Endpoint is where Pods reach the agent.
type Endpoint struct {
	// base is "https://host" or "https://host:port", host without the port.
	base, host string
}

// ParseEndpoint reads "https://host[:port]".
func ParseEndpoint(text string) (Endpoint, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.Opaque != "" {
		return Endpoint{}, fmt.Errorf("%q is not https://host[:port]", text)
	}
	if u.User != nil || strings.Trim(u.Path, "/") != "" || strings.ContainsAny(text, "?#") {
		return Endpoint{}, errors.New("it must be https://host[:port] without user, path and query")
	}
	host := u.Hostname()
	if _, err := netip.ParseAddr(host); err != nil || strings.Contains(host, "%") {
		if problems := validation.IsDNS1123Subdomain(host); len(problems) > 0 {
			return Endpoint{}, fmt.Errorf("the host %q is neither an address nor a name: %s", host, strings.Join(problems, ", "))
		}
	}
	if port := u.Port(); port != "" {
		if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
			return Endpoint{}, fmt.Errorf("the port %q is not from 1 to 65535", port)
		}
	}
	return Endpoint{base: "https://" + strings.TrimSuffix(u.Host, ":"), host: host}, nil
}

// URL returns the address at which the Pods of an Application call a hook.
func (e Endpoint) URL(app types.NamespacedName, hook application.Hook) string {
	return e.base + application.HookPath(app, string(hook))
}

// address returns the host as an address, nil if it is a name.
func (e Endpoint) address() net.IP { return net.ParseIP(e.host) }
