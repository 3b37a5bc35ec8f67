package target

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/dynamic"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/utils/lru"

	"github.com/krake-observer/krake-observer/internal/apply"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/reconcile"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

const (
	// maxAccounts limits the cached accounts, because their names come from users.
	maxAccounts = 1024
	// presentFor is how long the result that an account exists is cached. For as long the
	// agent may still act as a deleted one. The result that an account is missing is not
	// cached: a new account serves at once.
	presentFor = 10 * time.Second
	// maxGrants limits the cached rights, which are valid for as long.
	maxGrants = 8192
)

// Accounts is the target as the service accounts of the Applications write to it. It
// implements reconcile.Clusters.
//
// The API server allows the agent to impersonate an account that does not exist, so the
// agent checks for the account. It does so only before a write. An object that is gone
// already needs no account, and a namespace that is being deleted often loses it first.
type Accounts struct {
	// config is the agent's own connection, for the check of accounts and for reads.
	config          *rest.Config
	own             reconcile.Cluster
	fieldManager    string
	count           func(reason string)
	serviceAccounts corev1client.ServiceAccountsGetter
	reviews         authorizationclient.SubjectAccessReviewInterface
	// writers are the clusters by account, present the accounts that were found, readable the kinds that
	// an account may get.
	writers           *lru.Cache
	present, readable *cache.LRUExpireCache
}

// grant is the right of an account to get the objects of a kind in a namespace, or one Secret.
type grant struct {
	account  reconcile.Account
	resource gvr.GroupResource
	in, name string
}

// NewAccounts makes Accounts over the agent's own connection. own writes for the
// Applications without an account, and count counts each request with its reason.
func NewAccounts(config *rest.Config, own reconcile.Cluster, fieldManager string, count func(reason string)) (*Accounts, error) {
	client, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	reviews, err := authorizationclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &Accounts{
		config: config, own: own, fieldManager: fieldManager, count: count, serviceAccounts: client, reviews: reviews.SubjectAccessReviews(),
		writers: lru.New(maxAccounts), present: cache.NewLRUExpireCache(maxAccounts), readable: cache.NewLRUExpireCache(maxGrants),
	}, nil
}

// As implements reconcile.Clusters. If the account does not exist, the writes return that
// error.
func (a *Accounts) As(_ context.Context, account reconcile.Account) (reconcile.Cluster, error) {
	if account == (reconcile.Account{}) {
		return a.own, nil
	}
	writes, err := a.writesOf(account)
	if err != nil {
		return nil, err
	}
	return &writer{accounts: a, account: account, writes: writes}, nil
}

func (a *Accounts) writesOf(account reconcile.Account) (reconcile.Cluster, error) {
	if known, ok := a.writers.Get(account); ok {
		return known.(reconcile.Cluster), nil
	}
	client, err := newImpersonated(a.config, account.Namespace, account.Name)
	if err != nil {
		return nil, err
	}
	made := apply.New(client, a.fieldManager, a.count)
	a.writers.Add(account, made)
	return made, nil
}

// MayRead implements reconcile.Clusters. It asks for a kind and not for each object, so that an
// Application of many objects costs few reviews. Only for Secrets it asks for the object, because roles often name those. A refusal is
// not cached: a new right serves at once.
func (a *Accounts) MayRead(ctx context.Context, account reconcile.Account, ref manifest.Ref) error {
	right := grant{account: account, resource: ref.Resource.GroupResource(), in: ref.Namespace}
	if right.resource == (gvr.GroupResource{Resource: string(corev1.ResourceSecrets)}) {
		right.name = ref.Name
	}
	if _, known := a.readable.Get(right); known {
		return nil
	}
	name, err := userOf(account.Namespace, account.Name)
	if err != nil {
		return err
	}
	a.count("read")
	answer, err := a.reviews.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: name, Groups: append(serviceaccount.MakeGroupNames(account.Namespace), user.AllAuthenticated),
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "get", Group: ref.Resource.Group, Version: ref.Resource.Version, Resource: ref.Resource.Resource, Namespace: ref.Namespace, Name: right.name,
		},
	}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("ask whether %s may get %s: %w", name, right.resource, err)
	}
	if answer.Status.Allowed {
		a.readable.Add(right, struct{}{}, presentFor)
		return nil
	}
	if err := a.look(ctx, account); err != nil {
		return err
	}
	return fmt.Errorf("%w: %s/%s, get %s", reconcile.ErrUnreadable, account.Namespace, account.Name, strings.TrimSpace(right.resource.String()+" "+right.name))
}

// look returns an error if the target has no such account, or does not answer.
func (a *Accounts) look(ctx context.Context, account reconcile.Account) error {
	if _, known := a.present.Get(account); known {
		return nil
	}
	a.count("read")
	found, err := a.serviceAccounts.ServiceAccounts(account.Namespace).Get(ctx, account.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) || err == nil && found.DeletionTimestamp != nil:
		return fmt.Errorf("%w: create %s/%s there, and bind it to roles with the rights that the Application needs",
			reconcile.ErrNoAccount, account.Namespace, account.Name)
	case err != nil:
		return fmt.Errorf("look for service account %s/%s: %w", account.Namespace, account.Name, err)
	}
	a.present.Add(account, struct{}{}, presentFor)
	return nil
}

// writer writes to the target as the account of an Application, for one pass. It checks for
// the account before the first write.
type writer struct {
	accounts *Accounts
	account  reconcile.Account
	writes   reconcile.Cluster
	// mu serializes the checks: a pass writes several objects at the same time.
	mu sync.Mutex
	// missing is the error for a missing account, so that a pass checks only once.
	missing error
}

func (w *writer) look(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.missing != nil {
		return w.missing
	}
	err := w.accounts.look(ctx, w.account)
	if errors.Is(err, reconcile.ErrNoAccount) {
		w.missing = err
	}
	return err
}

// Create implements reconcile.Cluster.
func (w *writer) Create(ctx context.Context, ref manifest.Ref, object map[string]any) (map[string]any, error) {
	if err := w.look(ctx); err != nil {
		return nil, err
	}
	return w.writes.Create(ctx, ref, object)
}

// Patch implements reconcile.Cluster.
func (w *writer) Patch(ctx context.Context, ref manifest.Ref, live map[string]any, repair apply.Repair) (map[string]any, error) {
	return w.writes.Patch(ctx, ref, live, func(live map[string]any) (schema.Patch, error) {
		patch, err := repair(live)
		if err != nil || len(patch) == 0 {
			return patch, err
		}
		return patch, w.look(ctx)
	})
}

// TryPatch implements reconcile.Cluster.
func (w *writer) TryPatch(ctx context.Context, ref manifest.Ref, patch schema.Patch) error {
	if err := w.look(ctx); err != nil {
		return err
	}
	return w.writes.TryPatch(ctx, ref, patch)
}

// Delete implements reconcile.Cluster.
func (w *writer) Delete(ctx context.Context, ref manifest.Ref, proof apply.Proof) (map[string]any, error) {
	return w.writes.Delete(ctx, ref, func(live map[string]any) error {
		if err := proof(live); err != nil || (&unstructured.Unstructured{Object: live}).GetDeletionTimestamp() != nil {
			return err
		}
		return w.look(ctx)
	})
}

// newImpersonated makes a client that sends each write as a service account.
// It is the only place where such a client is made: with an empty user client-go
// sends no header, and the request has all the rights of the agent.
//
// The agent itself does the reads, because it watches the same objects anyway.
func newImpersonated(config *rest.Config, namespace, name string) (dynamic.Interface, error) {
	user, err := userOf(namespace, name)
	if err != nil {
		return nil, err
	}
	if config.Impersonate.UserName != "" {
		return nil, fmt.Errorf("act as %s: the agent's connection already impersonates a user, whose groups it would add", user)
	}
	config = rest.CopyConfig(config)
	// The API server knows the groups of a service account. Sending them would require rights
	// to them.
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return promhttp.RoundTripperFunc(func(request *http.Request) (*http.Response, error) {
			if request.Method != http.MethodGet {
				request = request.Clone(request.Context())
				request.Header.Set(transport.ImpersonateUserHeader, user)
			}
			return next.RoundTrip(request)
		})
	})
	return dynamic.NewForConfig(config)
}

// userOf returns the user name of a service account.
func userOf(namespace, name string) (string, error) {
	problems := slices.Concat(validation.IsDNS1123Label(namespace), validation.IsDNS1123Subdomain(name))
	if len(problems) > 0 {
		return "", fmt.Errorf("act as service account %q of namespace %q: %s", name, namespace, strings.Join(problems, ", "))
	}
	if slices.Contains([]string{metav1.NamespaceSystem, application.SystemNamespace, application.AgentsNamespace}, namespace) {
		return "", fmt.Errorf("act as service account %s of namespace %s: Applications must not use the accounts of Kubernetes, webhook and agents", name, namespace)
	}
	return serviceaccount.MakeUsername(namespace, name), nil
}
