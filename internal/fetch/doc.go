// Package fetch fetches templates and archives from the URLs that users write into their Applications.
//
// The user chooses the URL, and the agent sends the request, with the agent's place in the network and its rights. So
// it fetches only from hosts that its administrator has named, over TLS, and from public addresses. With example.org
// and *.example.net as hosts, the first two are fetched, and the others are not:
//
//	https://example.org/web.yaml
//	https://files.example.net/web.csar#sha256=<64 hexadecimal digits>
//
//	https://example.com/web.yaml           another host
//	https://example.org:8443/web.yaml      another port: name example.org:8443 for it
//	https://a.b.example.net/web.yaml       * is one label, as in certificates
//	http://example.org/web.yaml            a proxy on the way could change it
//	https://example.org/web.yaml           if example.org is 169.254.169.254 today
//
// The address is checked when the connection is made, so that a name server gains nothing by answering differently the
// second time. Every redirect is checked like the first URL. A request has no credentials, no cookies and no Referer,
// and uses no proxy of the environment.
//
// Time, bytes and requests are limited for all files of one translation together ([Session]). Errors have only texts
// of this package: the status of an Application repeats nothing that a host has sent.
//
// The package does not know what the bytes mean, and keeps none of them.
package fetch
