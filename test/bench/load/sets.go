package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/test/bench/workload"
	"github.com/krake-observer/krake-observer/test/kit"
	"github.com/krake-observer/krake-observer/test/program"
)

const (
	// namespaces is the number of namespaces with Applications.
	namespaces = 10
	// applicationPrefix distinguishes Applications from the ConfigMaps in them.
	applicationPrefix = "application-"
	// atOnce is the number of concurrent requests of the bench outside of measurements.
	atOnce = 16
)

// set has the guarded objects of a scenario, about ten in each Application.
type set struct {
	name           string
	kind           workload.Kind
	perApplication int
	size           int
	// drifted counts the drifts of each object, so that no field is fought over.
	drifted []int
}

func namespaceOf(application int) string { return fmt.Sprintf("load-%d", application%namespaces) }

func (s *set) namespace(i int) string { return namespaceOf(i / s.perApplication) }

func (s *set) object(i int) string { return fmt.Sprintf("%s-%05d", s.name, i) }

// about returns the name of a measurement with this set.
func (s *set) about(name string) string {
	return fmt.Sprintf("%s/kind=%s/objects=%d", name, s.kind.Name, s.size)
}

func (s *set) selector() string { return workload.SetLabel + "=" + s.name }

// grow creates the Applications of more objects, up to the size. No agent carries them
// out yet.
func (w *world) grow(ctx context.Context, s *set, size int) error {
	if err := w.become(ctx, nothing, s); err != nil {
		return err
	}
	from, to := s.size/s.perApplication, (size+s.perApplication-1)/s.perApplication
	fmt.Fprintf(w.log, "load: %s: %d more Applications of %d objects\n", s.name, to-from, s.perApplication)
	s.size = to * s.perApplication
	s.drifted = append(s.drifted, make([]int, s.size-len(s.drifted))...)
	return program.Each(ctx, to-from, atOnce, func(ctx context.Context, i int) error {
		cm, err := s.application(from + i)
		if err != nil {
			return err
		}
		cm.Namespace = namespaceOf(from + i)
		return w.admitted(ctx, cm)
	})
}

// admitted creates an Application, and tries again if the webhook had no time for it.
func (w *world) admitted(ctx context.Context, cm *corev1.ConfigMap) error {
	for {
		_, err := w.client.CoreV1().ConfigMaps(cm.Namespace).Create(ctx, cm, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil // created by a try whose answer was lost
		}
		if !apierrors.IsInternalError(err) && !apierrors.IsTimeout(err) && !apierrors.IsTooManyRequests(err) {
			return err
		}
		if err := program.Pause(ctx, time.Second); err != nil {
			return err
		}
	}
}

// application returns an Application as a user creates it.
func (s *set) application(n int) (*corev1.ConfigMap, error) {
	var documents []string
	for i := n * s.perApplication; i < (n+1)*s.perApplication; i++ {
		text, err := json.Marshal(s.kind.Manifest(s.name, s.object(i)))
		if err != nil {
			return nil, err
		}
		documents = append(documents, string(text))
	}
	return kit.Application("", s.applicationName(n), strings.Join(documents, "\n---\n")), nil
}

func (s *set) applicationName(n int) string {
	return fmt.Sprintf("%s%s-%05d", applicationPrefix, s.name, n)
}

// carryOut lets our agent carry out the Applications, and returns the time from its
// start until all objects existed.
func (w *world) carryOut(ctx context.Context, s *set) (time.Duration, error) {
	start := time.Now()
	if err := w.start(ctx, ours, s); err != nil {
		return 0, err
	}
	for {
		there, err := w.count(ctx, s)
		if err != nil {
			return 0, err
		}
		if there == s.size {
			took := time.Since(start)
			return took, w.quiet(ctx)
		}
		if err := program.Pause(ctx, 200*time.Millisecond); err != nil {
			return 0, fmt.Errorf("%d of %d objects are there: %w", there, s.size, err)
		}
	}
}

// count returns the number of the set's objects.
func (w *world) count(ctx context.Context, s *set) (int, error) {
	options, sum := metav1.ListOptions{LabelSelector: s.selector(), Limit: 2000}, 0
	for {
		page, err := w.metadata.Resource(s.kind.Resource).List(ctx, options)
		if err != nil {
			return 0, err
		}
		sum += len(page.Items)
		if page.Continue == "" {
			return sum, nil
		}
		options.Continue = page.Continue
	}
}
