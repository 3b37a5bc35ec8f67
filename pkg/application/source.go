package application

import (
	"errors"
	"io/fs"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Source is the URL of a template or an archive that is not in the ConfigMap:
//
//	https://example.org/web/service.yaml
//	https://example.org:8443/web.csar#sha256=<64 hexadecimal digits>
//
// but not http://example.org/web.yaml, because others could change it in transit. [ParseSource]
// returns a Source. Code that fetches it must check the host as well.
type Source struct {
	// URL has the host in lower case, no default port and no fragment.
	URL string
	// Digest is that of the content that the user wants, as sha256:<hexadecimal>, empty for any.
	Digest string
	// Archive reports that the content is a CSAR archive and not a template.
	Archive bool
}

// String returns the source as a user writes it.
func (s Source) String() string {
	if s.Digest == "" {
		return s.URL
	}
	return s.URL + "#" + strings.Replace(s.Digest, ":", "=", 1)
}

// Origin is the server of a URL, by https.
type Origin struct {
	// Host is a name in lower case, or an IP address in its canonical spelling.
	Host string
	Port uint16
}

const defaultPort = 443

func (o Origin) String() string {
	host := o.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if o.Port == defaultPort {
		return host
	}
	return host + ":" + strconv.Itoa(int(o.Port))
}

const maxURL = 2048

var (
	scheme     = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)
	digestMark = regexp.MustCompile(`^sha256=[0-9A-Fa-f]{64}$`)
	// aNumber is a last label for which some programs read the whole host as an IPv4 address:
	// 2130706433, 0x7f000001, 0177.0.0.1 and 127.1 are all 127.0.0.1.
	aNumber = regexp.MustCompile(`(^|\.)([0-9]+|0[xX][0-9A-Fa-f]*)\.?$`)
)

// ParseSource reports whether the text of the key is a URL, one line that begins with a scheme, and parses
// it. Any other text is a template or an archive. No error repeats the text, which may contain a password.
func ParseSource(key, text string) (source Source, isURL bool, err error) {
	text = strings.TrimSpace(text)
	if !scheme.MatchString(text) || strings.ContainsAny(text, "\r\n") {
		return Source{}, false, nil
	}
	source, err = parseSource(key, text)
	return source, true, err
}

func parseSource(key, text string) (Source, error) {
	location, mark, marked := strings.Cut(text, "#")
	if marked && !digestMark.MatchString(mark) {
		return Source{}, errors.New("after the # of a URL, write sha256= and the 64 hexadecimal digits of the content's digest (sha256sum FILE), or leave out the #")
	}
	address, err := parseURL(location)
	if err != nil {
		return Source{}, err
	}
	origin, err := OriginOf(address)
	if err != nil {
		return Source{}, err
	}
	if err := checkPath(key, address); err != nil {
		return Source{}, err
	}
	source := Source{URL: "https://" + origin.String() + address.EscapedPath(), Archive: key == CSARKey}
	if marked {
		source.Digest = strings.Replace(strings.ToLower(mark), "=", ":", 1)
	}
	return source, nil
}

// parseURL parses a URL that must have neither a fragment nor a query.
func parseURL(text string) (*url.URL, error) {
	isForeign := func(r rune) bool { return r <= ' ' || r > '~' || r == '\\' }
	switch {
	case len(text) > maxURL:
		return nil, errors.New("a URL has at most " + strconv.Itoa(maxURL) + " bytes")
	case strings.ContainsFunc(text, isForeign):
		return nil, errors.New(`a URL has no blanks, no \ and nothing beyond ASCII: write these as % and two hexadecimal digits, and a host as its xn-- name`)
	case strings.Contains(text, "?"):
		return nil, errors.New("a URL with a query (?) is refused: serve the file under a path without a query")
	}
	address, err := url.Parse(text)
	if err != nil { // which would repeat the text
		return nil, errors.New("it is not a valid URL: write https://HOST/PATH, or https://HOST:PORT/PATH")
	}
	return address, nil
}

// OriginOf returns the server of the URL. It refuses a host that one program reads as a name and another
// one as an IP address. It refuses credentials, because all readers of the Application could read them.
func OriginOf(address *url.URL) (Origin, error) {
	switch {
	case address.Scheme == "http":
		return Origin{}, errors.New("http:// is refused, because others could change the content in transit: use https://")
	case address.Scheme == "file":
		return Origin{}, errors.New("file:// is refused, because it would be a file of the agent: put the content into the Application, or serve it at an https:// URL")
	case address.Scheme != "https":
		return Origin{}, errors.New("only https:// is fetched")
	case address.User != nil:
		return Origin{}, errors.New("a URL with a user name or a password (before an @) is refused: serve the file without credentials to all readers of the Application")
	}
	host, err := hostOf(address)
	if err != nil {
		return Origin{}, err
	}
	port, err := portOf(address)
	return Origin{Host: host, Port: port}, err
}

func hostOf(address *url.URL) (string, error) {
	host := address.Hostname()
	bracketed := strings.HasPrefix(address.Host, "[")
	if bracketed || aNumber.MatchString(host) {
		ip, err := netip.ParseAddr(host)
		if err != nil || ip.String() != host || ip.Is6() != bracketed || ip.Is4In6() || ip.Zone() != "" {
			return "", errors.New("the host is an IP address in an unusual spelling: write a name, or the address as 192.0.2.1 or [2001:db8::1]")
		}
		return host, nil
	}
	host = strings.ToLower(host)
	if len(validation.IsDNS1123Subdomain(host)) > 0 {
		return "", errors.New("the host is not a name of letters, digits, - and . (no . at the end)")
	}
	return host, nil
}

func portOf(address *url.URL) (uint16, error) {
	text := address.Port()
	if text == "" && !strings.HasSuffix(address.Host, ":") {
		return defaultPort, nil
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 || strconv.FormatUint(port, 10) != text {
		return 0, errors.New("the port is not a number from 1 to 65535: leave it out, with its colon, for 443")
	}
	return uint16(port), nil
}

// checkPath checks the path and its suffix. As in Krake, the suffix is case-sensitive.
func checkPath(key string, address *url.URL) error {
	file, rooted := strings.CutPrefix(address.Path, "/")
	if !rooted || !fs.ValidPath(file) || strings.ContainsFunc(file, unicode.IsControl) {
		return errors.New("the path of the URL is missing, or has an empty part, a part . or .., or control characters: write the normalized path")
	}
	switch path.Ext(address.EscapedPath()) {
	case ".yaml", ".yml":
		if key == CSARKey {
			return errors.New("the URL of an archive ends in .csar or .zip: that of a template belongs under " + ToscaKey)
		}
	case ".csar", ".zip":
		if key != CSARKey {
			return errors.New("the URL of a template ends in .yaml or .yml: that of an archive belongs under " + CSARKey)
		}
	default:
		return errors.New("the URL of a template ends in .yaml or .yml, that of an archive in .csar or .zip, in small letters")
	}
	return nil
}
