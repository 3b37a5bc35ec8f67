package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// metrics reads the metrics of our webhook.
type metrics struct {
	client     *http.Client
	url, token string
}

func newMetrics(address, token string) *metrics {
	return &metrics{
		client: &http.Client{Transport: &http.Transport{
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the certificate for metrics is the webhook's own, and it is on this machine
		}},
		url: "https://" + address + "/metrics", token: token,
	}
}

// sums are the values of the webhook's own metrics, by name and labels.
type sums map[string]float64

// read returns the sums up to now.
func (m *metrics) read(ctx context.Context) (sums, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+m.token)
	response, err := m.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("read the webhook's metrics: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("read the webhook's metrics: %s", response.Status)
	}
	read := sums{}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		name, text, _ := strings.Cut(lines.Text(), " ")
		if !strings.HasPrefix(name, "krake_webhook_") {
			continue
		}
		if read[name], err = strconv.ParseFloat(text, 64); err != nil {
			return nil, fmt.Errorf("read the webhook's metrics: %s: %w", name, err)
		}
	}
	return read, lines.Err()
}

// since adds the difference to an earlier reading.
func (s sums) since(former sums, into sums) {
	for name, value := range s {
		into[name] += value - former[name]
	}
}

// phase returns the mean time of a phase in seconds.
func (s sums) phase(name string) float64 {
	const metric = "krake_webhook_admission_duration_seconds"
	return s[fmt.Sprintf("%s_sum{phase=%q}", metric, name)] / s[fmt.Sprintf("%s_count{phase=%q}", metric, name)]
}

// requests returns the number of answered requests.
func (s sums) requests() float64 {
	return s[`krake_webhook_admission_duration_seconds_count{phase="whole"}`]
}

// reviews returns the number of checked rights.
func (s sums) reviews() float64 {
	return s[`krake_webhook_access_reviews_total{result="allowed"}`]
}
