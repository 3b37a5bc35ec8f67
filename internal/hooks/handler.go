package hooks

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"io"
	"mime"
	"net/http"
	"path"
	"runtime/debug"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/json"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	t, ok := targetOf(r.URL.EscapedPath())
	var given *answer
	switch {
	case !ok:
		given = unknownPath()
	case r.Method != http.MethodPut:
		given = wrongMethod()
	default:
		given = s.answer(w, r, t)
	}
	s.note(r.RemoteAddr, t, given)
	_, _ = io.CopyN(io.Discard, r.Body, maxUnused) // the answer is written even if this fails
	if err := given.write(w); err != nil {
		s.options.Logger.V(1).Info("the client did not receive the answer to a hook", "source", r.RemoteAddr, "error", err.Error())
	}
}

// answer handles a request. The cheapest check comes first. Nothing is read of an Application, and
// no answer depends on one, before the sender has a certificate of its name: the names of
// Applications are not public.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, t target) (given *answer) {
	defer func() {
		if recover() != nil { // its value is not logged: it may quote the request
			given = panicked()
			s.options.Logger.Info("a request to a hook has panicked", "stack", string(debug.Stack()))
		}
	}()
	if !s.limits.allow(senderOf(r.RemoteAddr)) {
		return tooManyRequests()
	}
	token, refused := tokenOf(w, r)
	if refused != nil {
		return refused
	}
	if !s.working.TryAcquire(1) {
		return busy()
	}
	defer s.working.Release(1)
	hook := t.action.hook()
	certificate := certificateIn(r.TLS)
	if !isOfName(certificate, t.app, hook) {
		return unproven(hook).because(errNoCertificate)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), patience)
	defer cancel()
	app, err := s.options.Applications.Get(ctx, t.app)
	switch {
	case errors.Is(err, ErrAnotherActs):
		return elsewhere()
	case err != nil:
		return unavailable(err)
	case app == nil:
		return unproven(hook).because(errNoApplication)
	case !isProven(app, hook, token):
		return unproven(hook).because(errWrongToken)
	case !isIdentified(app, hook, certificate):
		return unproven(hook).because(errNoCertificate)
	}
	return s.act(ctx, t.action, app)
}

// tokenOf reads the token out of the body. It ignores unknown fields, because a program
// may be written for a later agent.
func tokenOf(w http.ResponseWriter, r *http.Request) (token string, refused *answer) {
	if mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || mediaType != "application/json" {
		return "", wrongType()
	}
	if r.ContentLength > maxBody {
		return "", tooLarge()
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return "", tooLarge()
	}
	if err != nil {
		return "", unreadBody()
	}
	return parseToken(body)
}

func parseToken(body []byte) (token string, refused *answer) {
	if !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) {
		return "", badBody()
	}
	var object struct {
		Token string `json:"token"`
	}
	if twice, err := json.UnmarshalStrict(body, &object, json.DisallowDuplicateFields); err != nil || len(twice) > 0 {
		return "", badBody()
	}
	return object.Token, nil
}

// isProven reports whether the hook is on and the token is that of the hook. It compares
// digests in constant time.
func isProven(app *application.Application, hook application.Hook, token string) bool {
	sum := sha256.Sum256([]byte(token))
	const prefix = "sha256:"
	recorded, ok := strings.CutPrefix(app.Hooks.Tokens[hook], prefix)
	known, err := hex.DecodeString(recorded)
	ok = ok && err == nil && len(known) == sha256.Size
	return subtle.ConstantTimeCompare(sum[:], known) == 1 && ok && token != "" && app.Spec.Hooks.Has(hook)
}

// certificateIn returns the client certificate, which the CA has signed, nil if there is none.
func certificateIn(state *tls.ConnectionState) *x509.Certificate {
	if state == nil || len(state.VerifiedChains) == 0 || len(state.VerifiedChains[0]) == 0 {
		return nil
	}
	return state.VerifiedChains[0][0]
}

// isOfName reports whether a certificate belongs to the hook of an Application of this name, the
// present or a former one.
func isOfName(certificate *x509.Certificate, app types.NamespacedName, hook application.Hook) bool {
	if certificate == nil || len(certificate.URIs) != 1 {
		return false
	}
	uid := path.Base(certificate.URIs[0].Path)
	return identityOf(app, types.UID(uid), hook).has(certificate)
}

// isIdentified reports whether the certificate belongs to the hook of this Application. One of a
// former Application of its name does not.
func isIdentified(app *application.Application, hook application.Hook, certificate *x509.Certificate) bool {
	return identityOf(app.NamespacedName, app.UID, hook).has(certificate)
}

func (s *Server) act(ctx context.Context, asked action, app *application.Application) *answer {
	var state application.State
	var err error
	switch asked {
	case complete:
		state, err = s.options.Actions.Complete(ctx, app)
	case shutdown:
		state, err = s.options.Actions.Shutdown(ctx, app)
	case retry:
		state, err = s.options.Actions.Retry(ctx, app)
	}
	switch {
	case errors.Is(err, ErrNotDegraded):
		return notDegraded()
	case err != nil:
		return unavailable(err)
	}
	return accepted(app, state)
}

// note logs and counts the answer to a request.
func (s *Server) note(source string, t target, given *answer) {
	asked := string(t.action)
	if asked == "" {
		asked = "none"
	}
	s.requests.WithLabelValues(asked, strconv.Itoa(given.code)).Inc()
	values := []any{"application", t.app.String(), "hook", asked, "status", given.code, "source", source}
	if given.cause != nil {
		values = append(values, "cause", given.cause.Error())
	}
	s.options.Logger.V(given.level()).Info("a hook was called", values...)
}
