package fetch

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// hosts are those that the administrator of the agent has named.
type hosts struct {
	exact map[application.Origin]bool
	// below has example.org for *.example.org.
	below map[application.Origin]bool
}

// newHosts reads names as example.org, *.example.org, example.org:8443, 192.0.2.1
// or [2001:db8::1]:8443.
func newHosts(names []string) (hosts, error) {
	all := hosts{exact: map[application.Origin]bool{}, below: map[application.Origin]bool{}}
	for _, name := range names {
		parent, isBelow := strings.CutPrefix(name, "*.")
		origin, err := originNamed(parent)
		switch {
		case err != nil:
			return hosts{}, fmt.Errorf("%q is no host: %w", name, err)
		case isBelow && (isIP(origin.Host) || !strings.Contains(origin.Host, ".")):
			return hosts{}, fmt.Errorf("%q is no host: behind *. comes a domain of at least two labels, as in *.example.org", name)
		case isBelow:
			all.below[origin] = true
		default:
			all.exact[origin] = true
		}
	}
	return all, nil
}

var errNoHost = errors.New("write HOST or HOST:PORT, without a scheme and a path")

// originNamed reads a host with or without its port, and nothing else.
func originNamed(name string) (application.Origin, error) {
	address, err := url.Parse("https://" + name)
	if err != nil || address.Host != name {
		return application.Origin{}, errNoHost
	}
	return application.OriginOf(address)
}

func isIP(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

// check tells if the URL may be asked for, and gives it in the form in which it is:
// with nothing but what was looked at.
func (h hosts) check(address *url.URL) (*url.URL, error) {
	origin, err := application.OriginOf(address)
	if err != nil {
		return nil, refusal(err.Error())
	}
	if !h.has(origin) {
		return nil, refusal(fmt.Sprintf("%s is none of the hosts that this agent fetches from: its administrator can name it (--url-source-hosts)", origin))
	}
	checked := &url.URL{Scheme: "https", Host: origin.String(), Path: address.Path, RawPath: address.RawPath, RawQuery: address.RawQuery}
	return checked, nil
}

func (h hosts) has(origin application.Origin) bool {
	_, parent, _ := strings.Cut(origin.Host, ".")
	return h.exact[origin] || h.below[application.Origin{Host: parent, Port: origin.Port}]
}
