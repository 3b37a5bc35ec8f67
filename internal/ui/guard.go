package ui

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// guard admits requests of the user's browser to the page, and no others. Other programs and other
// users of the machine can reach the port, and any web page can send requests to it.
type guard struct {
	// address is the host and port of the page, as browsers write them. A request with another Host is an
	// attack by DNS.
	address, port string
	// token opens the page once. The link with it may be seen among the processes of the machine.
	token string
	// warn reports that the link was used again.
	warn func(string)
	// closed ends all requests then, and close closes it.
	closed chan struct{}
	close  func()

	mu     sync.Mutex
	isUsed bool
	// secret is the value of the cookie.
	secret string
}

func newGuard(address string) *guard {
	_, port, _ := net.SplitHostPort(address) // it is that of a listener
	closed := make(chan struct{})
	return &guard{
		address: strings.TrimSuffix(address, ":80"), port: port, secret: rand.Text(), token: rand.Text(), warn: func(string) {},
		closed: closed, close: sync.OnceFunc(func() { close(closed) }),
	}
}

// link opens the page.
func (g *guard) link() string {
	return (&url.URL{Scheme: "http", Host: g.address, Path: "/", RawQuery: url.Values{"token": {g.token}}.Encode()}).String()
}

// cookieName has the port, because browsers send cookies to all ports of a host.
func (g *guard) cookieName() string { return "krake-ui-" + g.port }

// wrap answers the requests that the guard does not admit.
func (g *guard) wrap(inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setHeaders(w.Header())
		switch {
		case r.Host != g.address:
			http.Error(w, "This is not the address of the page: use the link that kubectl krake ui printed.", http.StatusMisdirectedRequest)
		case !g.isOwn(r):
			http.Error(w, "Another page has sent this request: open the page of kubectl krake ui itself.", http.StatusForbidden)
		case r.URL.Query().Has("token"):
			g.open(w, r)
		case !g.isKnown(r):
			refuse(w)
		default:
			ctx, cancel := g.whileOpen(r.Context())
			defer cancel()
			inner.ServeHTTP(w, r.WithContext(ctx))
		}
	})
}

// whileOpen returns a context that ends when all pages are closed.
func (g *guard) whileOpen(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		select {
		case <-ctx.Done():
		case <-g.closed:
		}
	}()
	return ctx, cancel
}

func refuse(w http.ResponseWriter) {
	http.Error(w, "Open the link that kubectl krake ui printed. It works once: to have another one, start the command again.", http.StatusForbidden)
}

// setHeaders lets the page load and reach nothing but itself.
func setHeaders(header http.Header) {
	header.Set("Content-Security-Policy", "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'")
	header.Set("Referrer-Policy", "same-origin") // with none, a form would have no origin
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
}

// isOwn reports whether the page itself has sent a request, or the user has typed its address. A
// browser states the origin of each request that could change anything.
func (g *guard) isOwn(r *http.Request) bool {
	origin, site := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
	if origin != "" && origin != "http://"+g.address {
		return false
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead && origin == "" {
		return false
	}
	return site == "" || site == "same-origin" || site == "none"
}

// open turns the token into a cookie, once. If another browser has the link, too, it may be that of
// another user, and may have been the first. So a second use ends all pages.
func (g *guard) open(w http.ResponseWriter, r *http.Request) {
	secret, isGranted := "", g.isKnown(r)
	if !isGranted {
		secret, isGranted = g.use(r.URL.Query().Get("token"))
	}
	if !isGranted {
		refuse(w)
		return
	}
	if secret != "" {
		//nolint:gosec // Secure is for https: this is http to the own machine
		http.SetCookie(w, &http.Cookie{Name: g.cookieName(), Value: secret, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	}
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// use returns the secret for the first use of the token.
func (g *guard) use(token string) (secret string, isGranted bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case !isEqual(token, g.token):
		return "", false
	case g.isUsed:
		g.close()
		g.secret = rand.Text()
		g.warn("The link was used a second time. All pages are closed, because another user of this machine may have opened one: start the command again.")
		return "", false
	}
	g.isUsed = true
	return g.secret, true
}

func (g *guard) isKnown(r *http.Request) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, cookie := range r.CookiesNamed(g.cookieName()) {
		if isEqual(cookie.Value, g.secret) {
			return true
		}
	}
	return false
}

func isEqual(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
