package fetch

import (
	"net/netip"
	"net/url"
	"testing"

	"github.com/krake-observer/krake-observer/test/check"
)

func TestAddresses(t *testing.T) {
	const allowed = ""
	open := func(what string) string {
		return "refused: its address is " + what + ": the administrator of the agent can allow the range (--url-source-private-cidrs)"
	}
	shut := func(what string) string { return "refused: its address is " + what }
	linkLocal, metadata := shut("a link-local address"), shut("the metadata service of a cloud")
	for _, c := range []struct{ ip, want string }{
		{"8.8.8.8", allowed}, {"1.1.1.1", allowed}, {"93.184.215.14", allowed}, {"172.15.255.255", allowed}, {"172.32.0.0", allowed},
		{"100.63.255.255", allowed}, {"100.128.0.0", allowed}, {"223.255.255.255", allowed}, {"198.17.255.255", allowed}, {"198.20.0.0", allowed},
		{"2606:4700:4700::1111", allowed}, {"2a00:1450:4001::1", allowed}, {"2001:4860:4860::8888", allowed}, {"2003::1", allowed},
		{"64:ff9b::808:808", allowed}, // 8.8.8.8 in a network with IPv6 alone

		{"127.0.0.1", open("loopback")}, {"127.255.255.255", open("loopback")}, {"::1", open("loopback")},
		{"10.0.0.1", open("private")}, {"172.16.0.1", open("private")}, {"172.31.255.255", open("private")}, {"192.168.1.1", open("private")},
		{"100.64.0.1", open("private")}, {"100.127.255.255", open("private")}, {"fc00::1", open("private")}, {"fd12:3456::1", open("private")},
		{"192.0.0.8", open("reserved")}, {"192.0.0.192", open("reserved")}, {"192.88.99.1", open("reserved")}, {"240.0.0.1", open("reserved")},
		{"192.0.2.1", open("for documentation")}, {"198.51.100.7", open("for documentation")}, {"203.0.113.9", open("for documentation")},
		{"2001:db8::1", open("for documentation")}, {"3fff::1", open("for documentation")}, {"198.18.0.1", open("for benchmarks")}, {"198.19.255.255", open("for benchmarks")},
		{"2001::1", open("reserved")}, {"2001:0:7f00:1::", open("reserved")}, {"2001:1ff::1", open("reserved")}, // Teredo and similar ranges
		{"2002:7f00:1::", open("an IPv4 address in disguise")}, {"2002:808:808::", open("an IPv4 address in disguise")},
		{"::127.0.0.1", open("reserved")}, {"::8.8.8.8", open("reserved")}, {"64:ff9b:1::1", open("reserved")}, {"100::1", open("reserved")},
		{"5f00::1", open("reserved")}, {"fec0::1", open("reserved")}, {"4000::1", open("reserved")}, {"::ffff:0:127.0.0.1", open("reserved")},

		{"::ffff:127.0.0.1", open("loopback")}, {"::ffff:10.0.0.1", open("private")}, {"::ffff:8.8.8.8", allowed}, {"::ffff:169.254.169.254", linkLocal},
		{"64:ff9b::7f00:1", open("loopback")}, {"64:ff9b::a00:1", open("private")}, {"64:ff9b::a9fe:a9fe", linkLocal}, {"64:ff9b::", shut("unspecified")},

		{"169.254.169.254", linkLocal}, {"169.254.0.1", linkLocal}, {"fe80::1", linkLocal}, {"fe80::1%eth0", linkLocal}, {"febf::1", linkLocal},
		{"100.100.100.200", metadata}, {"168.63.129.16", metadata}, {"fd00:ec2::254", metadata}, {"fd20:ce::254", metadata}, {"::ffff:168.63.129.16", metadata},
		{"0.0.0.0", shut("unspecified")}, {"0.1.2.3", shut("unspecified")}, {"::", shut("unspecified")},
		{"224.0.0.1", shut("multicast")}, {"239.255.255.255", shut("multicast")}, {"ff02::1", shut("multicast")}, {"255.255.255.255", shut("broadcast")},
	} {
		got := allowed
		if err := (addresses{}).check(netip.MustParseAddr(c.ip)); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.ip, got, c.want)
		}
	}
}

// A range that the administrator allows is open, whatever other range contains the address,
// except for those that cannot be opened.
func TestAllowedRanges(t *testing.T) {
	var ranges []netip.Prefix
	for _, text := range []string{"10.1.0.0/16", "100.64.0.0/10", "fd00::/8", "64:ff9b::/96", "::1/128", "0.0.0.0/0"} {
		ranges = append(ranges, netip.MustParsePrefix(text))
	}
	for _, c := range []struct {
		ip      string
		allowed []netip.Prefix
		want    bool
	}{
		{"10.1.2.3", ranges[:1], true}, {"::ffff:10.1.2.3", ranges[:1], true}, {"10.2.0.1", ranges[:1], false},
		{"64:ff9b::a01:203", ranges[:1], false}, {"64:ff9b::a01:203", ranges, true}, {"64:ff9b::a9fe:a9fe", ranges, false},
		{"100.64.1.1", ranges, true}, {"100.100.100.200", ranges, false},
		{"fd12::1", ranges, true}, {"fd00:ec2::254", ranges, false},
		{"::1", ranges, true}, {"169.254.169.254", ranges, false}, {"0.0.0.0", ranges, false}, {"::ffff:169.254.169.254", ranges, false},
		{"8.8.8.8", ranges[:1], true},
	} {
		allowed, err := newAddresses(c.allowed)
		check.Must(t, err)
		if got := allowed.check(netip.MustParseAddr(c.ip)) == nil; got != c.want {
			t.Errorf("%s with %v: %v", c.ip, c.allowed, got)
		}
	}
}

func TestControlReadsWhatTheDialerGives(t *testing.T) {
	for address, want := range map[string]bool{
		"8.8.8.8:443": true, "[2606:4700::1]:443": true, "127.0.0.1:443": false, "[fe80::1%eth0]:443": false, "[::ffff:127.0.0.1]:443": false,
		"example.org:443": false, "": false, "8.8.8.8": false,
	} {
		if got := (addresses{}).control("tcp", address, nil) == nil; got != want {
			t.Errorf("%q: %v", address, got)
		}
	}
}

func TestHosts(t *testing.T) {
	hosts, err := newHosts([]string{"example.org", "Example.NET:8443", "*.example.com", "*.ports.example.com:8443", "192.0.2.1", "[2001:db8::1]:8443"})
	check.Must(t, err)
	for text, want := range map[string]string{
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
	} {
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
