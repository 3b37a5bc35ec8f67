package webhook

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/krake-observer/krake-observer/pkg/mutate"
)

const (
	// reviewsAtOnce bounds the concurrent reviews of one request.
	reviewsAtOnce = 16
	// allowedFor is how long a granted right is cached, and so how long a right that is
	// revoked still counts. A refusal is never cached: a user who is granted a right tries
	// again at once.
	allowedFor = 10 * time.Second
	maxAllowed = 8192
)

// authority reviews the rights of users, each with answers that are only for that user.
type authority struct {
	reviews authorizationclient.SubjectAccessReviewInterface
	allowed *cache.LRUExpireCache
}

func newAuthority(reviews authorizationclient.SubjectAccessReviewInterface, now cache.Clock) *authority {
	return &authority{reviews: reviews, allowed: cache.NewLRUExpireCacheWithClock(maxAllowed, now)}
}

// grant is a right of a user that was asked for.
type grant struct {
	user [sha256.Size]byte // of all that the API server says of the user, which may be large
	mutate.Access
}

// denied returns the needs that the user has no right to, in their order.
func (a *authority) denied(ctx context.Context, user authenticationv1.UserInfo, needs []mutate.Need) ([]mutate.Need, error) {
	identity, err := json.Marshal(user)
	if err != nil {
		return nil, fmt.Errorf("encode the user: %w", err)
	}
	allowed := make([]bool, len(needs))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(reviewsAtOnce)
	for i, need := range needs {
		asked := grant{sha256.Sum256(identity), need.Access}
		if _, known := a.allowed.Get(asked); known {
			reviews.WithLabelValues("cached").Inc()
			allowed[i] = true
			continue
		}
		group.Go(func() error {
			var err error
			allowed[i], err = a.review(ctx, user, asked)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("ask for the rights of the user: %w", err)
	}
	var denied []mutate.Need
	for i, need := range needs {
		if !allowed[i] {
			denied = append(denied, need)
		}
	}
	return denied, nil
}

func (a *authority) review(ctx context.Context, user authenticationv1.UserInfo, asked grant) (bool, error) {
	spec := specOf(user)
	spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
		Verb: asked.Verb, Group: asked.Group, Resource: asked.Resource, Namespace: asked.Namespace, Name: asked.Name,
	}
	answer, err := a.reviews.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
	switch {
	case err != nil:
		reviews.WithLabelValues("error").Inc()
		return false, err
	case !answer.Status.Allowed:
		reviews.WithLabelValues("denied").Inc()
		return false, nil
	}
	reviews.WithLabelValues("allowed").Inc()
	a.allowed.Add(asked, struct{}{}, allowedFor)
	return true, nil
}

// specOf returns a review of the rights of a user. The caller adds the right.
func specOf(user authenticationv1.UserInfo) authorizationv1.SubjectAccessReviewSpec {
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	return authorizationv1.SubjectAccessReviewSpec{User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra}
}
