package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// counts are the requests of one user by what they are.
type counts map[string]int

// asked is what one user has asked for.
type asked struct {
	counts

	// patching is how long the API server had to do with each PATCH of an object of the
	// set, in milliseconds.
	patching []float64
}

// mark is a place in the audit log: its end now.
func (w *world) mark() (int64, error) {
	info, err := os.Stat(w.cluster.AuditLog())
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// entry is what the audit log says of a request.
type entry struct {
	Verb string `json:"verb"`
	User struct {
		Username string `json:"username"`
	} `json:"user"`
	Object struct {
		Resource string `json:"resource"`
		Name     string `json:"name"`
	} `json:"objectRef"`
	Received  metav1.MicroTime `json:"requestReceivedTimestamp"`
	Completed metav1.MicroTime `json:"stageTimestamp"`
}

// class is what a request is, as "target patch", "hub patch" or "event". What is
// about Leases, and the watches, is none.
func (e entry) class(s *set) string {
	switch {
	case e.Object.Resource == "leases" || e.Verb == "watch":
		return ""
	case e.Object.Resource == "events":
		return "event"
	case e.Object.Resource == "configmaps" && strings.HasPrefix(e.Object.Name, applicationPrefix):
		return "hub " + e.Verb
	case e.Object.Resource == s.kind.Resource.Resource && e.Object.Name != "":
		return "target " + e.Verb
	}
	return strings.TrimSpace("other " + e.Verb + " " + e.Object.Resource)
}

// requests gives what a user has asked for since the mark.
func (w *world) requests(from int64, user string, s *set) (asked, error) {
	found := asked{counts: counts{}}
	err := w.cluster.AuditLines(from, func(line []byte) error {
		if !strings.Contains(string(line), user) {
			return nil
		}
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("audit log: %w", err)
		}
		class := e.class(s)
		if e.User.Username != user || class == "" {
			return nil
		}
		found.counts[class]++
		if class == "target patch" {
			found.patching = append(found.patching, milliseconds(e.Completed.Sub(e.Received.Time)))
		}
		return nil
	})
	return found, err
}

// settle waits until a user asks for nothing more, or for ten seconds, and gives what it
// has asked for since the mark.
func (w *world) settle(ctx context.Context, from int64, user string, s *set) (asked, error) {
	var before asked
	for range 8 {
		now, err := w.requests(from, user, s)
		if err != nil {
			return asked{}, err
		}
		if before.counts != nil && now.sum("") == before.sum("") {
			return now, nil
		}
		before = now
		if err := pause(ctx, 1500*time.Millisecond); err != nil {
			return asked{}, err
		}
	}
	return before, nil
}

// sum adds up the classes that begin so.
func (c counts) sum(prefix string) int {
	sum := 0
	for class, n := range c {
		if strings.HasPrefix(class, prefix) {
			sum += n
		}
	}
	return sum
}

// String gives "20 target patch, 3 event".
func (c counts) String() string {
	var texts []string
	for _, class := range names(c) {
		texts = append(texts, fmt.Sprintf("%d %s", c[class], class))
	}
	return strings.Join(texts, ", ")
}

// writes are the requests that ask for a change.
func (c counts) writes() int {
	sum := 0
	for class, n := range c {
		for _, verb := range []string{"event", " create", " patch", " update", " delete"} {
			if strings.Contains(class, verb) {
				sum += n
				break
			}
		}
	}
	return sum
}
