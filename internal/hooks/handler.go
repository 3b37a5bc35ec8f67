package hooks

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"io"
	"mime"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/json"

	"github.com/krake-observer/krake-observer/pkg/application"
)

const (
	// maxBody is what a body may have, in bytes: several times what it needs.
	maxBody = 4 << 10
	// maxUnused is how much of a body is read that is not used: a client that is still writing
	// when the connection closes does not read the answer.
	maxUnused = 64 << 10
	// atOnce is how many requests are worked on.
	atOnce = 64
	// patience is how long hub and agent may take. It goes on when the caller does not
	// wait: what was proven is carried out.
	patience = 10 * time.Second
)

// Applications gives the Application of a name, as the agent of this cluster sees it;
// nil if there is none. An error is that it cannot be told now.
type Applications interface {
	Get(ctx context.Context, name types.NamespacedName) (*application.Application, error)
}

// ErrNotDegraded is the error of [Actions] if a shutdown that was not given up is to
// be tried again.
var ErrNotDegraded = errors.New("the shutdown was not given up")

// Actions carries out what was asked for and proven. Each may be asked for more than
// once, and gives the state that the Application is in then. Any error but
// ErrNotDegraded is that it cannot be done now.
type Actions interface {
	// Complete deletes the Application.
	Complete(ctx context.Context, app *application.Application) (application.State, error)
	// Shutdown takes note that the Application has shut down. It is without effect
	// while nobody has asked for that.
	Shutdown(ctx context.Context, app *application.Application) (application.State, error)
	// Retry has the shutdown asked for once more, after it was given up.
	Retry(ctx context.Context, app *application.Application) (application.State, error)
}

// action is the last part of the path: what is asked for.
type action string

const (
	complete action = action(application.Complete)
	shutdown action = action(application.Shutdown)
	retry    action = "retry"
)

func (a action) isKnown() bool { return a == complete || a == shutdown || a == retry }

// hook gives the hook that proves the right to an action.
func (a action) hook() application.Hook {
	if a == complete {
		return application.Complete
	}
	return application.Shutdown
}

// target is what a path means.
type target struct {
	app    types.NamespacedName
	action action
}

// targetOf reads a path. Names are looked for only if the API would have them.
func targetOf(path string) (target, bool) {
	parts := strings.Split(path, "/")
	if len(parts) != 7 {
		return target{}, false
	}
	t := target{app: types.NamespacedName{Namespace: parts[3], Name: parts[5]}, action: action(parts[6])}
	ok := t.action.isKnown() && path == application.HookPath(t.app, string(t.action)) &&
		len(validation.IsDNS1123Label(t.app.Namespace)) == 0 && len(validation.IsDNS1123Subdomain(t.app.Name)) == 0
	if !ok {
		return target{}, false
	}
	return t, true
}

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
	_, _ = io.CopyN(io.Discard, r.Body, maxUnused) // whatever comes of it, the answer is written
	if err := given.write(w); err != nil {
		s.options.Logger.V(1).Info("the answer to a hook was not taken", "source", r.RemoteAddr, "error", err.Error())
	}
}

// answer is all that is done about a request, in the order in which it costs more.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, t target) (given *answer) {
	defer func() {
		if recover() != nil { // what it says is not told: it may be what was sent
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
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), patience)
	defer cancel()
	app, err := s.options.Applications.Get(ctx, t.app)
	switch {
	case err != nil:
		return unavailable(err)
	case app == nil:
		return unknownApplication()
	case !isProven(app, t.action.hook(), token):
		return unproven(t.action.hook())
	case !isIdentified(app, t.action.hook(), r.TLS):
		return unidentified(t.action.hook())
	}
	return s.act(ctx, t.action, app)
}

// tokenOf reads the token out of the body. Fields that are not known count for
// nothing: a program may be written for a later agent.
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

// isProven tells if the token is that of the hook, and the hook is on. Digests are
// compared, in a time that does not depend on them.
func isProven(app *application.Application, hook application.Hook, token string) bool {
	sum := sha256.Sum256([]byte(token))
	const prefix = "sha256:"
	recorded, ok := strings.CutPrefix(app.Hooks.Tokens[hook], prefix)
	known, err := hex.DecodeString(recorded)
	ok = ok && err == nil && len(known) == sha256.Size
	return subtle.ConstantTimeCompare(sum[:], known) == 1 && ok && token != "" && app.Spec.Hooks.Has(hook)
}

// isIdentified tells if the client certificate, which the CA has signed, is that of
// the hook of this very Application, and not of a former one of its name.
func isIdentified(app *application.Application, hook application.Hook, state *tls.ConnectionState) bool {
	if state == nil || len(state.VerifiedChains) == 0 || len(state.VerifiedChains[0]) == 0 {
		return false
	}
	return identityOf(app.NamespacedName, app.UID, hook).has(state.VerifiedChains[0][0])
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

// note logs and counts what a request was answered with.
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
