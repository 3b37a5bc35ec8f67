package filter

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	// reviewTimeout bounds the time that a client waits for the API server.
	reviewTimeout = 10 * time.Second
	// allowedFor is how long an allowed request is allowed again without another review.
	// A token or a right that is revoked therefore still counts for as long. A refusal is
	// never cached: it would displace a request that is allowed.
	allowedFor = time.Minute
	maxAllowed = 256
)

// ByAPIServer returns a filter that asks the API server of the configuration. It is a provider
// for [server.Options].
func ByAPIServer(config *rest.Config, client *http.Client) (server.Filter, error) {
	tokens, err := authenticationclient.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	rights, err := authorizationclient.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	return newReviewer(tokens.TokenReviews(), rights.SubjectAccessReviews(), clock.RealClock{}).filter, nil
}

// reviewer has requests reviewed by an API server.
type reviewer struct {
	tokens  authenticationclient.TokenReviewInterface
	rights  authorizationclient.SubjectAccessReviewInterface
	allowed *cache.LRUExpireCache // of [digest]
}

func newReviewer(tokens authenticationclient.TokenReviewInterface, rights authorizationclient.SubjectAccessReviewInterface, now cache.Clock) *reviewer {
	return &reviewer{tokens: tokens, rights: rights, allowed: cache.NewLRUExpireCacheWithClock(maxAllowed, now)}
}

// filter implements [server.Filter].
func (r *reviewer) filter(logger logr.Logger, next http.Handler) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		refused, err := r.review(request.Context(), accessOf(request))
		if refused == nil {
			next.ServeHTTP(w, request)
			return
		}
		if err != nil {
			logger.Error(err, refused.text)
		}
		http.Error(w, refused.text, refused.code)
	}), nil
}

// access is what a request asks for.
type access struct{ token, verb, path string }

func accessOf(request *http.Request) access {
	return access{tokenOf(request), strings.ToLower(request.Method), request.URL.Path}
}

// tokenOf returns the bearer token of a request, empty if there is none.
func tokenOf(request *http.Request) string {
	fields := strings.Fields(request.Header.Get("Authorization"))
	if len(fields) != 2 || !strings.EqualFold(fields[0], "Bearer") {
		return ""
	}
	return fields[1]
}

// digest identifies an access without its token, in a size that no client chooses.
type digest [sha256.Size]byte

// digest is unique because neither tokens nor verbs have spaces.
func (a access) digest() digest {
	return sha256.Sum256([]byte(a.token + " " + a.verb + " " + a.path))
}

// refusal is the answer to a request that is not served. Its texts are those of
// controller-runtime's filter.
type refusal struct {
	code int
	text string
}

// review returns nil if the API server allows the access. The error says why it was not asked.
func (r *reviewer) review(ctx context.Context, asked access) (*refusal, error) {
	if asked.token == "" {
		return &refusal{http.StatusUnauthorized, "Unauthorized"}, nil
	}
	if _, known := r.allowed.Get(asked.digest()); known {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	found, err := r.tokens.Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: asked.token},
	}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return &refusal{http.StatusInternalServerError, "Authentication failed"}, fmt.Errorf("ask whose the token is: %w", err)
	case !found.Status.Authenticated:
		return &refusal{http.StatusUnauthorized, "Unauthorized"}, nil
	}
	user := found.Status.User
	answer, err := r.rights.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: specOf(user, asked)}, metav1.CreateOptions{})
	switch {
	case err != nil:
		text := fmt.Sprintf("Authorization for user %s failed", user.Username)
		return &refusal{http.StatusInternalServerError, text}, fmt.Errorf("ask for the rights of the user: %w", err)
	case !answer.Status.Allowed:
		return &refusal{http.StatusForbidden, fmt.Sprintf("Authorization denied for user %s", user.Username)}, nil
	}
	r.allowed.Add(asked.digest(), nil, allowedFor)
	return nil, nil
}

func specOf(user authenticationv1.UserInfo, asked access) authorizationv1.SubjectAccessReviewSpec {
	spec := ReviewOf(user)
	spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Verb: asked.verb, Path: asked.path}
	return spec
}

// ReviewOf returns a review of the rights of an authenticated user. The caller adds the right.
func ReviewOf(user authenticationv1.UserInfo) authorizationv1.SubjectAccessReviewSpec {
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	return authorizationv1.SubjectAccessReviewSpec{User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra}
}
