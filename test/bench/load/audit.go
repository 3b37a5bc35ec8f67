package main

import (
	"context"
	"strings"
	"time"

	"github.com/krake-observer/krake-observer/test/kit"
	"github.com/krake-observer/krake-observer/test/program"
)

// counts has the number of one user's requests by class.
type counts map[string]int

// classOf returns the class of a request, as "target patch", "hub patch", "event" or "other". Requests about Leases,
// watches, and the lists of metadata that check the watches have none.
func classOf(r kit.Request, s *set) string {
	switch {
	case r.Object.Resource == "leases" || r.Verb == "watch" || r.Verb == "list":
		return ""
	case r.Object.Resource == "events":
		return "event"
	case r.Object.Resource == "configmaps" && strings.HasPrefix(r.Object.Name, applicationPrefix):
		return "hub " + r.Verb
	case r.Object.Resource == s.kind.Resource.Resource && r.Object.Name != "":
		return "target " + r.Verb
	}
	return "other"
}

// requests returns the requests of a user since the mark.
func (w *world) requests(from kit.Mark, user string, s *set) (counts, error) {
	made, err := from.FindNaming([]string{user}, kit.By(user))
	found := counts{}
	for _, r := range made {
		if class := classOf(r, s); class != "" {
			found[class]++
		}
	}
	return found, err
}

// settle waits until a user makes no more requests, or for ten seconds, and returns the
// requests since the mark.
func (w *world) settle(ctx context.Context, from kit.Mark, user string, s *set) (counts, error) {
	var before counts
	for range 8 {
		now, err := w.requests(from, user, s)
		if err != nil {
			return nil, err
		}
		if before != nil && now.sum("") == before.sum("") {
			return now, nil
		}
		before = now
		if err := program.Pause(ctx, 1500*time.Millisecond); err != nil {
			return nil, err
		}
	}
	return before, nil
}

// sum adds up the classes with this prefix.
func (c counts) sum(prefix string) float64 {
	sum := 0
	for class, n := range c {
		if strings.HasPrefix(class, prefix) {
			sum += n
		}
	}
	return float64(sum)
}
