package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/krake-observer/krake-observer/test/kit"
	"github.com/krake-observer/krake-observer/test/program"
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

// classOf is what a request is, as "target patch", "hub patch" or "event". What is
// about Leases, and the watches, is none.
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

// requests gives what a user has asked for since the mark.
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

// settle waits until a user asks for nothing more, or for ten seconds, and gives what it
// has asked for since the mark.
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
