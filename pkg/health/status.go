package health

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// unreadable says no more, as the errors of kstatus quote the value.
const unreadable = "a field that kstatus reads is of a type that it does not expect"

// statusOf asks kstatus.
func statusOf(live map[string]any) (s Status, message string) {
	// kstatus asserts what the API promises, such as that a waiting container
	// has a reason that is a text.
	defer func() {
		if recover() != nil {
			s, message = StatusUnknown, unreadable
		}
	}()
	result, err := status.Compute(&unstructured.Unstructured{Object: live})
	if err != nil {
		return StatusUnknown, unreadable
	}
	return Status(result.Status), inOurWords(result, live)
}

// inOurWords gives the message of kstatus, unless it is that of a condition:
// then the condition is named, and its reason.
func inOurWords(result *status.Result, live map[string]any) string {
	if len(result.Conditions) == 0 { // all is well, in fixed words
		return result.Message
	}
	for condition := range objects(live, "status", "conditions") {
		if at[string](condition, "message") == result.Message && at[string](condition, "reason") == result.Conditions[0].Reason {
			return nameOf(condition)
		}
	}
	return result.Message
}

// nameOf gives "Ready is False: ProvisioningFailed". What has not the shape of a
// reason may be anything.
func nameOf(condition map[string]any) string {
	name := fmt.Sprintf("%s is %s", word(at[string](condition, "type")), word(at[string](condition, "status")))
	if reason := word(at[string](condition, "reason")); reason != "" {
		name += ": " + reason
	}
	return name
}

// word gives the text if it is one word of a reasonable length, nothing otherwise.
func word(text string) string {
	const longest = 64
	if len(text) > longest || strings.ContainsFunc(text, isNotOfAName) {
		return ""
	}
	return text
}

func isNotOfAName(r rune) bool {
	return r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
}

// correct has status and state say the same, where one of them knows better.
func (h *Health) correct(kind kind, live map[string]any) {
	switch {
	case h.Status == StatusTerminating || h.Status == StatusUnknown:
	case kind == job && isSuspended(live) && h.State == StateRunning:
		h.Status, h.Message = StatusCurrent, "Job is suspended"
	case kind == pod && isUnschedulable(live):
		// kstatus looks at the clock, but no event comes when its 15 s are over.
		h.Status, h.Message = StatusInProgress, "Pod could not be scheduled"
	case h.Status == StatusCurrent && h.State == StateFailed:
		h.Status = StatusFailed
	case h.Status == StatusCurrent && h.State == StateDegraded:
		h.Status, h.Message = StatusInProgress, fmt.Sprintf("Ready: %d/%d", h.Pods.Running, h.Pods.Desired)
	}
	if kind != pod || h.Status == StatusTerminating { // the containers of a Pod tell more
		h.State = worse(h.State, h.Status.state())
	}
}

// state gives what a status is to the state of an Application. Of what cannot
// be read nothing bad is known.
func (s Status) state() State {
	switch s {
	case StatusFailed:
		return StateFailed
	case StatusInProgress, StatusTerminating:
		return StateDegraded
	}
	return StateCompleted
}

// shorten cuts between two letters.
func shorten(message string) string {
	if len(message) <= MaxMessage {
		return message
	}
	const dots = "..."
	end := MaxMessage - len(dots)
	for end > 0 && !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end] + dots
}
