package pki

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

// unreachable is an API server that answers no request, and records all of them.
type unreachable struct {
	mu       sync.Mutex
	requests []string
}

func (u *unreachable) RoundTrip(request *http.Request) (*http.Response, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.requests = append(u.requests, request.URL.Path+"?"+request.URL.Query().Get("fieldSelector"))
	return nil, errors.New("no route to host")
}

// recorded counts the requests with a path and a field selector, or all of them.
func (u *unreachable) recorded(request string) (number int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, recorded := range u.requests {
		if strings.Contains(recorded, request) {
			number++
		}
	}
	return number
}

// startUnreachable starts a manager with a Keeper that reaches no API server, and with other
// work. The manager sends its result to ended.
func startUnreachable(t *testing.T, target *unreachable, limit time.Duration) (keeper *Keeper, working chan struct{}, ended chan error, stop func()) {
	t.Helper()
	mgr, err := ctrl.NewManager(&rest.Config{Host: "https://hub.invalid"}, manager.Options{
		Logger:                 logr.Discard(),
		Metrics:                server.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		Controller:             config.Controller{SkipNameValidation: new(true), CacheSyncTimeout: limit},
	})
	kit.Must(t, err)
	guard := options()
	guard.IsValidating = true
	keeper, err = Add(mgr, &rest.Config{Host: "https://target.invalid", Transport: target}, nil, guard, time.Now)
	kit.Must(t, err)
	check.Equal(t, "requests before the start", 0, target.recorded(""))
	working, ended = make(chan struct{}), make(chan error, 1)
	kit.Must(t, mgr.Add(manager.RunnableFunc(func(context.Context) error {
		close(working)
		return nil
	})))
	ctx, stop := context.WithCancel(t.Context())
	go func() { ended <- mgr.Start(ctx) }()
	return keeper, working, ended, stop
}

// While the API server with Secret and configuration is unreachable, the process neither ends
// nor delays its other work. It ends when it should.
func TestAnUnreachableServerDelaysOnlyTheKeeper(t *testing.T) {
	target := &unreachable{}
	keeper, working, ended, stop := startUnreachable(t, target, 0)
	select {
	case <-working:
	case <-time.After(kit.Timeout):
		t.Fatal("the other work has not begun")
	}
	// One try sends two requests: a watch that begins with a list, and a list.
	kit.EventuallyTrue(t, "each object is requested again", func() bool {
		return target.recorded("/api/v1/namespaces/krake-system/secrets?metadata.name=krake-webhook-certificate") > 2 &&
			target.recorded("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations?metadata.name=krake-webhook") > 2
	})
	check.Equal(t, "the Keeper is ready", false, keeper.Ready(nil) == nil)
	select {
	case err := <-ended:
		t.Fatal("the manager has ended: ", err)
	default:
	}
	stop()
	kit.Must(t, <-ended)
}

// A manager waits without limit for Secret and configuration, or ends after its own limit.
func TestAManagerMayLimitTheWait(t *testing.T) {
	check.Equal(t, "the wait without a limit", math.MaxInt64, syncTimeout(config.Controller{}))
	_, _, ended, stop := startUnreachable(t, &unreachable{}, time.Millisecond)
	defer stop()
	check.Fails(t, "the manager", <-ended, "timed out waiting for cache to be synced")
}
