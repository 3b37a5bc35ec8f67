package fetch

import (
	"fmt"
	"net/netip"
	"slices"
	"syscall"
)

// block is a range of addresses that are not public.
type block struct {
	netip.Prefix
	what string
}

func blocks(what string, prefixes ...string) []block {
	all := make([]block, 0, len(prefixes))
	for _, prefix := range prefixes {
		all = append(all, block{netip.MustParsePrefix(prefix), what})
	}
	return all
}

var (
	// never are the addresses that no administrator can allow: clouds serve credentials
	// there, and no host that serves files has one of them.
	never = slices.Concat(
		blocks("a link-local address", "169.254.0.0/16", "fe80::/10"),
		blocks("the metadata service of a cloud", "100.100.100.200/32", "168.63.129.16/32", "fd00:ec2::254/128", "fd20:ce::254/128"),
		blocks("unspecified", "0.0.0.0/8", "::/128"),
		blocks("multicast", "224.0.0.0/4", "ff00::/8"),
		blocks("broadcast", "255.255.255.255/32"),
	)
	// special are the remaining blocks of the special-purpose registries for IPv4 (RFC 6890),
	// and those of IPv6 within the global range below.
	special = slices.Concat(
		blocks("loopback", "127.0.0.0/8", "::1/128"),
		blocks("private", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"),
		blocks("reserved", "192.0.0.0/24", "192.88.99.0/24", "240.0.0.0/4", "2001::/23"), // the last one with Teredo
		blocks("for documentation", "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20"),
		blocks("for benchmarks", "198.18.0.0/15"),
		blocks("an IPv4 address in disguise", "2002::/16"), // 6to4
	)
	// global is the part of IPv6 that is assigned. The remaining ranges have a special
	// meaning, or will get one.
	global = netip.MustParsePrefix("2000::/3")
	// nat64 has an IPv4 address in its last four bytes, for networks with IPv6 only.
	nat64 = netip.MustParsePrefix("64:ff9b::/96")
)

// addresses are the ranges that may be connected to beside the public ones.
type addresses []netip.Prefix

func newAddresses(allowed []netip.Prefix) (addresses, error) {
	for _, prefix := range allowed {
		if !prefix.IsValid() || prefix.Addr().Is4In6() {
			return nil, fmt.Errorf("%s is no range of addresses, as 10.0.0.0/8 or fd00::/8 are", prefix)
		}
		for _, block := range never {
			if block.Contains(prefix.Addr()) && block.Bits() <= prefix.Bits() {
				return nil, fmt.Errorf("%s cannot be allowed: it is %s", prefix, block.what)
			}
		}
	}
	return slices.Clone(allowed), nil
}

// control refuses the connection of a socket to an address. The dialer calls it for
// each address that a name resolves to.
func (a addresses) control(_, address string, _ syscall.RawConn) error {
	connected, err := netip.ParseAddrPort(address)
	if err != nil {
		return refusal("its address cannot be read")
	}
	return a.check(connected.Addr())
}

func (a addresses) check(ip netip.Addr) error {
	ip = ip.Unmap().WithZone("")
	reached := behind(ip)
	if what := within(reached, never); what != "" {
		return refusal("its address is " + what)
	}
	if slices.ContainsFunc(a, func(prefix netip.Prefix) bool { return prefix.Contains(ip) }) {
		return nil
	}
	what := within(reached, special)
	if what == "" && reached.Is6() && !global.Contains(reached) {
		what = "reserved"
	}
	if what != "" {
		return refusal("its address is " + what + ": the administrator of the agent can allow the range (--url-source-private-cidrs)")
	}
	return nil
}

// behind returns the IPv4 address behind a NAT64 address, and any other address unchanged.
func behind(ip netip.Addr) netip.Addr {
	if !nat64.Contains(ip) {
		return ip
	}
	bytes := ip.As16()
	return netip.AddrFrom4([4]byte(bytes[12:]))
}

// within returns what the first block with the address is, empty if there is none.
func within(ip netip.Addr, blocks []block) string {
	for _, block := range blocks {
		if block.Contains(ip) {
			return block.what
		}
	}
	return ""
}
