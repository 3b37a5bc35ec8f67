package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/krake-observer/krake-observer/test/kit"
	"github.com/krake-observer/krake-observer/test/program"
)

// counts has the number of one user's requests by class.
type counts map[string]int

// asked has the requests of one user.
type asked struct {
	counts

	// patching is the API server's time for each PATCH of an object of the set, in
	// milliseconds.
	patching []float64
}

// classOf returns the class of a request, as "target patch", "hub patch" or "event".
// Requests about Leases, and watches, have none.
func classOf(r kit.Request, s *set) string {
	switch {
	case r.Object.Resource == "leases" || r.Verb == "watch":
		return ""
	case r.Object.Resource == "events":
		return "event"
	case r.Object.Resource == "configmaps" && strings.HasPrefix(r.Object.Name, applicationPrefix):
		return "hub " + r.Verb
	case r.Object.Resource == s.kind.Resource.Resource && r.Object.Name != "":
		return "target " + r.Verb
	}
	return strings.TrimSpace("other " + r.Verb + " " + r.Object.Resource)
}

// requests returns the requests of a user since the mark.
func (w *world) requests(from kit.Mark, user string, s *set) (asked, error) {
	made, err := from.FindNaming([]string{user}, kit.By(user))
	found := asked{counts: counts{}}
	for _, r := range made {
		class := classOf(r, s)
		if class == "" {
			continue
		}
		found.counts[class]++
		if class == "target patch" {
			found.patching = append(found.patching, milliseconds(r.Ended.Sub(r.Received)))
		}
	}
	return found, err
}

// settle waits until a user makes no more requests, or for ten seconds, and returns the
// requests since the mark.
func (w *world) settle(ctx context.Context, from kit.Mark, user string, s *set) (asked, error) {
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
		if err := program.Pause(ctx, 1500*time.Millisecond); err != nil {
			return asked{}, err
		}
	}
	return before, nil
}

// sum adds up the classes with this prefix.
func (c counts) sum(prefix string) int {
	sum := 0
	for class, n := range c {
		if strings.HasPrefix(class, prefix) {
			sum += n
		}
	}
	return sum
}

// String returns "20 target patch, 3 event".
func (c counts) String() string {
	var texts []string
	for _, class := range names(c) {
		texts = append(texts, fmt.Sprintf("%d %s", c[class], class))
	}
	return strings.Join(texts, ", ")
}

// writes counts the requests that change something.
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
