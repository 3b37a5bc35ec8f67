package health

import (
	"fmt"
	"regexp"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// unreadable has no details, because the errors of kstatus quote the value.
const unreadable = "a field that kstatus reads is of a type that it does not expect"

// statusOf returns the kstatus of an object.
func statusOf(live map[string]any) (s Status, message string) {
	// kstatus asserts what the API promises, such as that a waiting container has a text as its reason.
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

// inOurWords returns the message of kstatus. In place of the message of a condition, it returns the
// condition with its reason.
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

// word is one word of a reasonable length. What is none may be anything.
var word = regexp.MustCompile(`^\w{1,64}$`)

// nameOf returns "Ready is False: ProvisioningFailed", from those of the three that are words.
func nameOf(condition map[string]any) string {
	name := fmt.Sprintf("%s is %s", word.FindString(at[string](condition, "type")), word.FindString(at[string](condition, "status")))
	if reason := word.FindString(at[string](condition, "reason")); reason != "" {
		name += ": " + reason
	}
	return name
}
