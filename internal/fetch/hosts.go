package fetch

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// hosts are the origins that the administrator of the agent names. The host *.example.org stands for the names
// one label below example.org; no URL has such a host, see [application.OriginOf].
type hosts map[application.Origin]bool

// newHosts parses names such as example.org, *.example.org, example.org:8443, 192.0.2.1 and [2001:db8::1]:8443.
func newHosts(names []string) (hosts, error) {
	all := hosts{}
	for _, name := range names {
		parent, isBelow := strings.CutPrefix(name, "*.")
		origin, err := originNamed(parent)
		if err != nil {
			return nil, fmt.Errorf("%q is no host: %w", name, err)
		}
		if isBelow {
			if _, noIP := netip.ParseAddr(origin.Host); noIP == nil || !strings.Contains(origin.Host, ".") {
				return nil, fmt.Errorf("%q is no host: behind *. comes a domain of at least two labels, as in *.example.org", name)
			}
			origin.Host = "*." + origin.Host
		}
		all[origin] = true
	}
	return all, nil
}

// originNamed parses a host with or without its port, and nothing else.
func originNamed(name string) (application.Origin, error) {
	address, err := url.Parse("https://" + name)
	if err != nil || address.Host != name {
		return application.Origin{}, errors.New("write HOST or HOST:PORT, without a scheme and a path")
	}
	return application.OriginOf(address)
}

// check returns the URL to request, which has only the parts that were checked, or why it is not requested.
func (h hosts) check(address *url.URL) (*url.URL, error) {
	origin, err := application.OriginOf(address)
	if err != nil {
		return nil, refusal(err.Error())
	}
	_, parent, _ := strings.Cut(origin.Host, ".")
	if !h[origin] && !h[application.Origin{Host: "*." + parent, Port: origin.Port}] {
		return nil, refusal(fmt.Sprintf("%s is none of the hosts that this agent fetches from: its administrator can name it (--url-source-hosts)", origin))
	}
	return &url.URL{Scheme: "https", Host: origin.String(), Path: address.Path, RawPath: address.RawPath, RawQuery: address.RawQuery}, nil
}
