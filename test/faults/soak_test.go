package faults

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/test/faults/checker"
	"github.com/krake-observer/krake-observer/test/faults/proxy"
	"github.com/krake-observer/krake-observer/test/faults/results"
	"github.com/krake-observer/krake-observer/test/kit"
)

// soakVariable is how long the soak of the release tier takes.
const soakVariable = "KRAKE_FAULTS_SOAK"

// soak is the size of a soak.
type soak struct {
	apps                 int
	lasts, between, step time.Duration
	// restarts of the API server, evenly distributed
	restarts int
}

// An agent runs for a long time with many Applications that change continuously, while
// one fault follows another. At the end all is as the Applications say, and no
// invariant was violated. Memory, goroutines and files of the agent have not grown.
func TestSoak(t *testing.T) {
	kit.Long(t, "a soak")
	point := results.Point{Block: "soak", Scenario: "200 Applications", Mode: "random faults", Round: 1}
	if isRelease() && env.results.Has(point) {
		t.Skip("the results have a soak: take them away to have another")
	}
	s := newSoak(t)
	random := chance(point)
	metrics := freeAddress(t)
	l := newLane(t, "soak", resync, "--namespaces", "soak", "--metrics-bind-address", metrics)
	token := reader(t)
	apps := l.newApps(s.apps)
	kit.Must(t, each(apps, func(a *app) error {
		return creates("configmap one", "service 80", "deployment main:1")(t.Context(), a)
	}))
	kit.Must(t, l.await(t.Context(), standing(apps)))

	began, vitals, faults := time.Now(), &vitals{}, 0
	nextFault, restarts := began.Add(s.between), 0
	for mutations := 0; time.Since(began) < s.lasts; mutations++ {
		kit.Must(t, env.interrupted())
		kit.Must(t, mutate(t.Context(), random, apps[random.IntN(len(apps))]))
		if time.Now().After(nextFault) {
			nextFault = time.Now().Add(s.between)
			faults++
			if s.restarts > 0 && time.Since(began) > time.Duration(restarts+1)*s.lasts/time.Duration(s.restarts+1) && restarts < s.restarts {
				restarts++
				kit.Must(t, restartAPIServer(t.Context()))
			} else {
				kit.Must(t, l.strike(t.Context(), random))
			}
			kit.Must(t, vitals.take(t.Context(), l.agent, metrics, token, time.Since(began)))
		}
		kit.Must(t, sleep(t.Context(), s.step))
	}
	l.intercept(nil)
	kit.Must(t, l.await(t.Context(), standing(apps)))
	for _, a := range apps {
		l.settled[a.NamespacedName] = time.Now().Add(late)
	}
	violations, err := l.closeBatch(t.Context(), toldOf(apps))
	kit.Must(t, err)
	t.Logf("%s with %d Applications and %d faults, of which the API server was restarted %d times: %s", s.lasts, s.apps, faults, restarts, vitals)
	for _, violation := range violations {
		t.Error(violation)
	}
	if len(vitals.hours) == 0 {
		t.Error("the agent was never asked what it needs")
	}
	if isRelease() {
		kit.Must(t, vitals.areFlat())
		kit.Must(t, s.record(point, faults, vitals, violations))
	}
}

// newSoak returns the size of the soak in this tier. Without restarts of the API server,
// other tests may run beside it.
func newSoak(t *testing.T) soak {
	t.Helper()
	if !isRelease() {
		t.Parallel()
		return soak{apps: 50, lasts: 5 * time.Minute, between: 10 * time.Second, step: 500 * time.Millisecond}
	}
	s := soak{apps: 200, lasts: 30 * time.Minute, between: 30 * time.Second, step: time.Second, restarts: 2}
	if text := os.Getenv(soakVariable); text != "" {
		var err error
		s.lasts, err = time.ParseDuration(text)
		kit.Must(t, err)
	}
	return s
}

// record records the outcome of the soak.
func (s soak) record(point results.Point, faults int, vitals *vitals, violations []checker.Violation) error {
	record := recordOf(point, faults > 0, s.lasts, violations)
	record.Note = fmt.Sprintf("%d faults; %s", faults, vitals)
	return env.results.Add(&record)
}

// standing returns a check that all Applications are as the user last asked for.
func standing(apps []*app) func(context.Context) error {
	return func(ctx context.Context) error {
		return each(apps, func(a *app) error { return a.stands(ctx) })
	}
}

// toldOf returns the Applications as tales, of which only the end is judged.
func toldOf(apps []*app) []told {
	var all []told
	for _, a := range apps {
		all = append(all, told{app: a})
	}
	return all
}

// mutate changes something, as the user or as another client.
func mutate(ctx context.Context, random *rand.Rand, a *app) error {
	sentences := []sentence{
		says(fmt.Sprintf("configmap %d", random.IntN(100)), "service 80", "deployment main:1"),
		says(fmt.Sprintf("service %d", 80+random.IntN(10)), fmt.Sprintf("deployment main:%d", random.IntN(10))),
		drifts(fmt.Sprintf("service %d", 1000+random.IntN(1000))),
		drifts("deployment main:theirs"), loses("configmap"), loses("deployment"), edits("service"),
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return sentences[random.IntN(len(sentences))](ctx, a)
}

// strike causes a fault for a while.
func (l *lane) strike(ctx context.Context, random *rand.Rand) error {
	var calls atomic.Int64
	storm := func(fault proxy.Fault) func(proxy.Call) *proxy.Fault {
		return func(proxy.Call) *proxy.Fault {
			if calls.Add(1)%2 == 0 {
				return nil
			}
			return &fault
		}
	}
	storms := []func(proxy.Call) *proxy.Fault{
		storm(proxy.Fault{}), storm(proxy.Fault{Sent: true}), storm(proxy.Fault{Answer: http.StatusInternalServerError}),
		storm(proxy.Fault{Answer: http.StatusTooManyRequests}), storm(proxy.Fault{Answer: http.StatusConflict}),
		storm(proxy.Fault{Sent: true, Delay: 500 * time.Millisecond, Answer: http.StatusGatewayTimeout}),
	}
	chosen := random.IntN(len(storms) + 3)
	switch {
	case chosen < len(storms):
		l.intercept(storms[chosen])
	case chosen == len(storms): // all watches are too old
		l.proxy.Filter(func(proxy.Event) proxy.Verdict { return proxy.Expire })
	case chosen == len(storms)+1: // every event arrives twice
		l.proxy.Filter(func(proxy.Event) proxy.Verdict { return proxy.Twice })
	default: // the agent pauses
		if err := l.agent.pause(ctx, time.Second); err != nil {
			return err
		}
	}
	err := sleep(ctx, time.Second)
	l.intercept(nil)
	l.proxy.Filter(nil)
	return err
}

// pause pauses the agent for a while (SIGSTOP, SIGCONT).
func (a *agent) pause(ctx context.Context, long time.Duration) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.process == nil {
		return nil
	}
	if err := syscall.Kill(a.process.PID(), syscall.SIGSTOP); err != nil {
		return err
	}
	return errors.Join(sleep(ctx, long), syscall.Kill(a.process.PID(), syscall.SIGCONT))
}

// restartAPIServer kills the API server, and starts it again with the same arguments.
func restartAPIServer(ctx context.Context) error {
	former := processOf("kube-apiserver")
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", former.PID()))
	if err != nil {
		return fmt.Errorf("how the API server was started: %w", err)
	}
	if err := former.Kill(); err != nil {
		return err
	}
	var arguments []string
	for part := range bytes.SplitSeq(bytes.TrimSuffix(line, []byte{0}), []byte{0}) {
		arguments = append(arguments, string(part))
	}
	program := exec.Command(arguments[0], arguments[1:]...)
	program.Dir = filepath.Dir(env.AuditLog())
	start := time.Now()
	if _, err := env.Run("kube-apiserver", program); err != nil {
		return err
	}
	err = eventually(ctx, func(ctx context.Context) error {
		_, err := get(ctx, kit.ConfigMaps, types.NamespacedName{Namespace: "kube-system", Name: "kube-root-ca.crt"})
		return err
	})
	const warm = 10 * time.Second // the administrator is answered earlier, because this needs no RBAC rules
	env.warming = append(env.warming, checker.Window{From: start, Until: time.Now().Add(warm)})
	return err
}

// reader makes a token that may read metrics.
func reader(t *testing.T) string {
	t.Helper()
	const name = "faults-reader"
	env.Kubectl(t, "create", "serviceaccount", name, "--namespace", "default")
	env.Kubectl(t, "create", "clusterrole", name, "--verb", "get", "--non-resource-url", "/metrics")
	env.Kubectl(t, "create", "clusterrolebinding", name, "--clusterrole", name, "--serviceaccount", "default:"+name)
	return env.Token(t, "default", name)
}

// vitals are the resources that an agent uses, over time.
type vitals struct {
	hours                     []float64
	memory, goroutines, files []float64
}

// take reads the vitals once. It skips an agent that cannot be read because the API
// server, which reviews the token, is down.
func (v *vitals) take(ctx context.Context, of *agent, address, token string, since time.Duration) error {
	text, err := scrape(ctx, "https://"+address+"/metrics", token)
	if err != nil {
		return nil //nolint:nilerr // see above: areFlat wants enough of them
	}
	var values []float64
	for _, name := range []string{"process_resident_memory_bytes", "go_goroutines", "process_open_fds"} {
		found := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindSubmatch(text)
		if found == nil {
			return fmt.Errorf("the agent %s serves no %s", of.name, name)
		}
		number, err := strconv.ParseFloat(string(found[1]), 64)
		if err != nil {
			return err
		}
		values = append(values, number)
	}
	v.hours = append(v.hours, since.Hours())
	v.memory, v.goroutines, v.files = append(v.memory, values[0]/(1<<20)), append(v.goroutines, values[1]), append(v.files, values[2])
	return nil
}

func scrape(ctx context.Context, url, token string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // nobody has signed the agent's certificate, which is its own
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, errors.New(response.Status)
	}
	return io.ReadAll(response.Body)
}

// String returns the last values, and the slopes of the second half.
func (v *vitals) String() string {
	if len(v.hours) < 2 {
		return "too few samples"
	}
	last := len(v.hours) - 1
	return fmt.Sprintf("%d samples; in the end %.0f MiB, %.0f goroutines, %.0f files; in an hour %+.1f MiB, %+.1f goroutines, %+.1f files",
		len(v.hours), v.memory[last], v.goroutines[last], v.files[last], v.slope(v.memory), v.slope(v.goroutines), v.slope(v.files))
}

// slope returns the growth in an hour, from the second half of the values: the first
// half has the start of the agent.
func (v *vitals) slope(values []float64) float64 {
	half := len(values) / 2
	return slope(v.hours[half:], values[half:])
}

// slope returns the slope of the straight line that is nearest to the values (least
// squares).
func slope(x, y []float64) float64 {
	var sumX, sumY, sumXX, sumXY float64
	for i := range x {
		sumX, sumY, sumXX, sumXY = sumX+x[i], sumY+y[i], sumXX+x[i]*x[i], sumXY+x[i]*y[i]
	}
	n := float64(len(x))
	if below := n*sumXX - sumX*sumX; below != 0 {
		return (n*sumXY - sumX*sumY) / below
	}
	return 0
}

// areFlat returns an error if the agent uses ever more. The bounds are wide: half an
// hour has noise, and a leak at each fault is far above them.
func (v *vitals) areFlat() error {
	const memory, goroutines, files = 20, 60, 30 // growth in an hour
	switch {
	case len(v.hours) < 10:
		return fmt.Errorf("%d samples are too few", len(v.hours))
	case v.slope(v.memory) > memory || v.slope(v.goroutines) > goroutines || v.slope(v.files) > files:
		return fmt.Errorf("the agent needs more and more: %s", v)
	}
	return nil
}

// A leak differs from noise.
func TestAreFlat(t *testing.T) {
	for _, c := range []struct {
		why  string
		more float64
		flat bool
	}{{"noise", 0, true}, {"a leak of a goroutine each 30 s", 1, false}} {
		v := &vitals{}
		for i := range 60 {
			v.hours = append(v.hours, float64(i)/120)
			v.memory, v.files = append(v.memory, 80+float64(i%3)), append(v.files, 20)
			v.goroutines = append(v.goroutines, 100+float64(i%5)+c.more*float64(i))
		}
		if err := v.areFlat(); (err == nil) != c.flat {
			t.Errorf("%s: %v", c.why, err)
		}
	}
	if (&vitals{}).areFlat() == nil {
		t.Error("without any sample")
	}
}
