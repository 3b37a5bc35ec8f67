package faults

import (
	"context"
	"crypto/tls"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// reader makes a token that may read metrics.
func reader(t *testing.T) string {
	t.Helper()
	const name = "faults-reader"
	env.Kubectl(t, "create", "serviceaccount", name, "--namespace", "default")
	env.Kubectl(t, "create", "clusterrole", name, "--verb", "get", "--non-resource-url", "/metrics")
	env.Kubectl(t, "create", "clusterrolebinding", name, "--clusterrole", name, "--serviceaccount", "default:"+name)
	return env.Token(t, "default", name)
}

// vital is a resource that the agent or etcd uses, over time.
type vital struct {
	name   string
	metric string
	ofEtcd bool    // the metric is one of etcd, not of the agent
	scale  float64 // of the name's unit
	// most is the growth in an hour that counts as flat. It is wide: half an hour has noise, and a
	// leak at each fault is far above it.
	most   float64
	values []float64
}

// vitals are the resources that are observed, at certain hours since the start.
type vitals struct {
	hours []float64
	all   []vital
}

func newVitals() *vitals {
	return &vitals{all: []vital{
		{name: "MiB", metric: "process_resident_memory_bytes", scale: 1 << 20, most: 20},
		{name: "goroutines", metric: "go_goroutines", scale: 1, most: 60},
		{name: "files", metric: "process_open_fds", scale: 1, most: 30},
		{name: "MiB of etcd", metric: "etcd_mvcc_db_total_size_in_use_in_bytes", ofEtcd: true, scale: 1 << 20, most: 30},
	}}
}

// take reads the vitals once. It skips an agent that cannot be read because the API
// server, which reviews the token, is down.
func (v *vitals) take(ctx context.Context, of *agent, address, token string, since time.Duration) error {
	agent, err := scrape(ctx, "https://"+address+"/metrics", token)
	if err != nil {
		return nil //nolint:nilerr // see above: areFlat wants enough of them
	}
	etcd, err := askEtcd(ctx, http.MethodGet, "/metrics", "")
	if err != nil {
		return fmt.Errorf("metrics of etcd: %w", err)
	}
	for i := range v.all {
		each, metrics := &v.all[i], agent
		if each.ofEtcd {
			metrics = etcd
		}
		found := regexp.MustCompile(`(?m)^` + each.metric + ` (\S+)$`).FindSubmatch(metrics)
		if found == nil {
			return fmt.Errorf("%s: there is no %s", of.name, each.metric)
		}
		value, err := strconv.ParseFloat(string(found[1]), 64)
		if err != nil {
			return err
		}
		each.values = append(each.values, value/each.scale)
	}
	v.hours = append(v.hours, since.Hours())
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
	return answerOf(request, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // the agent has signed its certificate itself
}

// String returns the last values, and the slopes of the second half with their 95 % intervals.
func (v *vitals) String() string {
	if len(v.hours) < 10 {
		return "too few samples"
	}
	var ends, slopes []string
	for _, each := range v.all {
		slope, margin := v.slope(each)
		ends = append(ends, fmt.Sprintf("%.0f %s", each.values[len(each.values)-1], each.name))
		slopes = append(slopes, fmt.Sprintf("%+.1f ± %.1f %s", slope, margin, each.name))
	}
	return fmt.Sprintf("%d samples; in the end %s; in an hour %s", len(v.hours), strings.Join(ends, ", "), strings.Join(slopes, ", "))
}

// slope returns the growth in an hour, from the second half of the values: the first
// half has the start of the agent.
func (v *vitals) slope(of vital) (slope, margin float64) {
	half := len(v.hours) / 2
	return line(v.hours[half:], of.values[half:])
}

// line returns the slope of the straight line that is nearest to the values (least
// squares). The slope plus or minus the margin is its 95 % interval, if the values are many and independent.
func line(x, y []float64) (slope, margin float64) {
	n := float64(len(x))
	var meanX, meanY, xx, xy, rest float64
	for i := range x {
		meanX, meanY = meanX+x[i]/n, meanY+y[i]/n
	}
	for i := range x {
		xx, xy = xx+(x[i]-meanX)*(x[i]-meanX), xy+(x[i]-meanX)*(y[i]-meanY)
	}
	if xx == 0 || n < 3 {
		return 0, math.Inf(1)
	}
	slope = xy / xx
	for i := range x {
		off := y[i] - meanY - slope*(x[i]-meanX)
		rest += off * off
	}
	return slope, 1.96 * math.Sqrt(rest/(n-2)/xx)
}

// areFlat returns an error if something grows.
func (v *vitals) areFlat() error {
	if len(v.hours) < 10 {
		return fmt.Errorf("%d samples are too few", len(v.hours))
	}
	for _, each := range v.all {
		if slope, _ := v.slope(each); slope > each.most {
			return fmt.Errorf("%s: it grows more and more: %s", each.name, v)
		}
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
		v := newVitals()
		for i := range 60 {
			v.hours = append(v.hours, float64(i)/120)
			for k := range v.all {
				value := 80 + float64(i%3)
				if v.all[k].name == "goroutines" {
					value += c.more * float64(i)
				}
				v.all[k].values = append(v.all[k].values, value)
			}
		}
		if err := v.areFlat(); (err == nil) != c.flat {
			t.Errorf("%s: %v", c.why, err)
		}
	}
	if newVitals().areFlat() == nil {
		t.Error("without any sample")
	}
}

// The slope of a line is exact, and noise widens its interval.
func TestLine(t *testing.T) {
	x, y, noisy := []float64{}, []float64{}, []float64{}
	for i := range 50 {
		x, y = append(x, float64(i)), append(y, 3+2*float64(i))
		noisy = append(noisy, 3+2*float64(i)+float64(i%2)*10)
	}
	if slope, margin := line(x, y); math.Abs(slope-2) > 1e-9 || margin > 1e-9 {
		t.Errorf("slope %f ± %f", slope, margin)
	}
	if slope, margin := line(x, noisy); math.Abs(slope-2) > margin || margin < 0.05 || margin > 0.5 {
		t.Errorf("noisy slope %f ± %f", slope, margin)
	}
}
