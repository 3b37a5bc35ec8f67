// Package fetch gets templates and archives from the URLs that users write into
// their Applications.
//
// It is the user who says what is asked for, and the agent that asks, from where it
// stands in the network and with what it may do there. So nothing is fetched but
// from hosts that the agent's administrator has named, over TLS, and from public
// addresses. With example.org and *.example.net as hosts,
//
//	https://example.org/web.yaml
//	https://files.example.net/web.csar#sha256=<64 hexadecimal digits>
//
// may be fetched, and are not:
//
//	https://example.com/web.yaml           another host
//	https://example.org:8443/web.yaml      another port: name example.org:8443 for it
//	https://a.b.example.net/web.yaml       * is one label, as in certificates
//	http://example.org/web.yaml            anybody on the way could change it
//	https://example.org/web.yaml           if example.org is 169.254.169.254 today
//
// The address is looked at when the connection is made, after all names were
// resolved, so that a name server that answers differently the second time gains
// nothing. Every redirect is looked at as the first URL was. Nothing is sent that
// could be of use to the host: no credentials, no cookies, no Referer, and no proxy
// of the environment stands between.
//
// What may be had is limited by time, bytes and requests, for all files of one
// translation together ([Session]). Errors have texts of this package's own: nothing
// that a host has sent is repeated to whoever reads the status of an Application.
//
// The package does not know what the bytes mean, and keeps none of them.
package fetch
