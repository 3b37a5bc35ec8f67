package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/dynamic"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/internal/apierror"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
)

const (
	// trialsAtOnce bounds the admissions that try their objects at once, and dryRunsAtOnce the dry
	// runs of each of them.
	trialsAtOnce, dryRunsAtOnce = 8, 8
	// dryRunsPerSecond and dryRunsInBurst bound the dry runs of all admissions: any client that
	// reaches the port of the webhook can ask for them.
	dryRunsPerSecond, dryRunsInBurst = 100, 400
	// ownRightsFor is how long the webhook remembers which kinds it may try.
	ownRightsFor = time.Minute
	maxOwnRights = 1024
)

// dryRunner finds out by dry runs what the API server refuses to create.
type dryRunner struct {
	client dynamic.Interface
	// reviews are about the webhook itself, which may try some kinds only. rights has the answers
	// by GroupResource.
	reviews authorizationclient.SelfSubjectAccessReviewInterface
	rights  *cache.LRUExpireCache
	atOnce  *semaphore.Weighted
	budget  *rate.Limiter
	// timeout is for all objects of one request.
	timeout time.Duration
}

// newTrial returns nil, which tries nothing, if the timeout is 0.
func newDryRunner(config *rest.Config, timeout time.Duration) (*dryRunner, error) {
	if timeout == 0 {
		return nil, nil //nolint:nilnil // it is turned off
	}
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	reviews, err := authorizationclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return newDryRunnerWith(client, reviews.SelfSubjectAccessReviews(), timeout), nil
}

func newDryRunnerWith(client dynamic.Interface, reviews authorizationclient.SelfSubjectAccessReviewInterface, timeout time.Duration) *dryRunner {
	return &dryRunner{
		client: client, reviews: reviews, rights: cache.NewLRUExpireCache(maxOwnRights),
		atOnce: semaphore.NewWeighted(trialsAtOnce), budget: rate.NewLimiter(dryRunsPerSecond, dryRunsInBurst),
		timeout: timeout,
	}
}

// candidate is an object that would be created. Its index is that in the manifest.
type candidate struct {
	manifest.Ref

	index  int
	object map[string]any
}

// warnings returns the mistakes that the API server finds in objects, in their order. The last
// warning counts the objects that were not tried.
func (t *dryRunner) warnings(ctx context.Context, candidates []candidate) []string {
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	mistakes, tried := make([][]string, len(candidates)), make([]bool, len(candidates))
	if t.atOnce.TryAcquire(1) {
		defer t.atOnce.Release(1)
		var group errgroup.Group
		group.SetLimit(dryRunsAtOnce)
		for i, c := range candidates {
			group.Go(func() error {
				mistakes[i], tried[i] = t.try(ctx, c)
				return nil
			})
		}
		_ = group.Wait() // no error
	}
	warnings := slices.Concat(mistakes...)
	if untried := slices.DeleteFunc(tried, func(tried bool) bool { return tried }); len(untried) > 0 {
		warnings = append(warnings, fmt.Sprintf("data.%s: %d of %d new objects were not tried with a dry run: the API server did not answer within %s, or too many are tried now",
			application.ManifestKey, len(untried), len(candidates), t.timeout))
	}
	return warnings
}

// try returns the mistakes that the API server finds in an object. tried is false if they are unknown.
func (t *dryRunner) try(ctx context.Context, c candidate) (mistakes []string, tried bool) {
	may, err := t.may(ctx, c.Resource.GroupResource())
	if err != nil || may && !t.budget.Allow() {
		return nil, false
	}
	if !may {
		return nil, true
	}
	object := &unstructured.Unstructured{Object: c.object}
	object.SetNamespace(c.Namespace)
	_, err = t.client.Resource(c.Resource).Namespace(c.Namespace).Create(ctx, object,
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: name})
	return mistakesIn(c.index, err)
}

// may reports whether the webhook may try objects of a resource, in all namespaces.
func (t *dryRunner) may(ctx context.Context, resource schema.GroupResource) (bool, error) {
	if allowed, known := t.rights.Get(resource); known {
		return allowed == true, nil
	}
	answer, err := t.reviews.Create(ctx, &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "create", Group: resource.Group, Resource: resource.Resource},
	}}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	t.rights.Add(resource, answer.Status.Allowed, ownRightsFor)
	return answer.Status.Allowed, nil
}

// mistakesIn returns what the answer to a dry run says about the fields of an object. It repeats no
// other answer: those of quotas and policies are about the cluster, and any client that reaches the
// port of the webhook would read them. A missing namespace or account may be created before the
// object.
func mistakesIn(index int, err error) (mistakes []string, tried bool) {
	var answer apierrors.APIStatus
	switch {
	case err == nil:
		return nil, true
	case !errors.As(err, &answer), answer.Status().Code >= http.StatusInternalServerError, apierrors.IsTooManyRequests(err):
		return nil, false
	}
	for _, cause := range apierror.FieldErrors(err) {
		mistakes = append(mistakes, fmt.Sprintf("%s.%s: the API server refuses it: %s",
			mutate.ResourcePath(index), cause.Field, apierror.WithoutValue(cause.Message)))
	}
	return mistakes, true
}
